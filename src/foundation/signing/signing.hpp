// Signs and verifies requests by AWS Signature Version 4. sign() and presign() are for clients. The
// server reads claims and verifies them; it also accepts version 4a (ECDSA, for a set of regions)
// and the forms of S3's POST. Keys and instants are arguments.
//
// Algorithm:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
//
// Threads: pure functions. Errors: invalid (malformed), denied (wrong signature, expired, skewed),
// with AWS's messages.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::signing {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct Keys {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // "": long-term keys
};

struct Scope {
  std::string region;
  std::string service;
};

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

std::string sha256_hex(std::string_view bytes);
// Sha256 computes the hash of bytes that arrive in pieces. Confined to one thread.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void add(std::string_view bytes);
  std::string finish_hex();  // Requires: called once, last
 private:
  struct State;
  std::unique_ptr<State> state_;
};
std::string hmac_sha256(std::string_view key, std::string_view bytes);

// Signs a request. Returns the headers to add to it: Authorization, X-Amz-Date,
// X-Amz-Security-Token, x-amz-content-sha256. `headers` are the other headers that are sent and
// must be signed, including Host. `target` is in its final form.
HeaderList sign(std::string_view method, std::string_view target, const HeaderList& headers,
                std::string_view payload_sha256, const Keys& keys, const Scope& scope, Instant now);

// Signs a URL. Returns the target with X-Amz-* query parameters and signature, valid for `lifetime`
// from now.
std::string presign(std::string_view method, std::string_view target, std::string_view host,
                    const Keys& keys, const Scope& scope, Instant now, Duration lifetime);

enum class Algorithm {
  hmac,  // AWS4-HMAC-SHA256
  ecdsa  // AWS4-ECDSA-P256-SHA256: SigV4a
};

// The signer, the scope and the signature that a request claims. Nothing of it is verified yet.
struct Claim {
  Algorithm algorithm = Algorithm::hmac;
  std::string access_key_id;
  std::string session_token;
  std::string date;        // "20261120"
  Scope scope;             // SigV4a: without a region, until the caller sets one of region_set
  std::string region_set;  // SigV4a: "*" or "eu-west-1,us-*"; see region_set_includes()
  std::string signature;
  std::vector<std::string> signed_headers;  // lower-case, ordered
  Instant signed_at;
  std::optional<Duration> lifetime;  // presigned
  // the signature is in the target, not in the Authorization header
  bool in_query = false;
  // x-amz-content-sha256: a hash, UNSIGNED-PAYLOAD or STREAMING-... "": the header is absent, and
  // the client signed the hash of the body; the caller, which has the body, sets it before
  // verify().
  std::string payload_sha256;
};

// Reads the claim of a request. Returns nullopt for a request without a signature (anonymous).
// Errors: invalid.
Result<std::optional<Claim>> read_claim(std::string_view target, const HeaderList& headers);

// Returns true if a name or pattern ('*': any text) in X-Amz-Region-Set matches the region.
bool region_set_includes(std::string_view set, std::string_view region);

// The signature fields of a form (S3's POST). The signature covers only the base64 text of the
// policy.
struct FormSignature {
  std::string algorithm, credential, date, token, signature;
};
// Reads the claim of a form. It is valid for kPresignMax; the policy of the form may limit it
// further. Errors: invalid.
Result<Claim> read_form_claim(const FormSignature& form);

inline constexpr Duration kSkewMax = 15min;  // as AWS
inline constexpr Duration kPresignMax = 7 * 24h;

// Returns the key that signs the requests of one day to one service in one region. Callers should
// cache it, since it costs four HMACs.
std::string signing_key(std::string_view secret_access_key, std::string_view date,
                        const Scope& scope);

// Returns the key for check_signature(): signing_key() or, for SigV4a, the public key of the
// signer. Callers should cache both.
std::string verification_key(std::string_view secret_access_key, const Claim& claim);

// The result of check_signature(), for callers that have their own message for each fault.
enum class Verdict { valid, wrong_signature, skewed, expired, headers_not_signed };
// Returns the names, in lower case, of headers that a request must sign and does not sign: Host and
// every x-amz-* header, because services act on those (x-amz-copy-source turns a PUT into a copy).
// A presigned request need not sign x-amz-content-sha256, whose value is part of its signature in
// any case.
std::vector<std::string> headers_not_signed(const HeaderList& headers, const Claim& claim);
// Checks the signature of a claim, its times against `now`, and that all necessary headers are
// signed.
Verdict check_signature(std::string_view method, std::string_view target, const HeaderList& headers,
                        const Claim& claim, std::string_view verification_key, Instant now);
// Checks the signature and the times of a form, whose policy is given in base64, as received.
Verdict check_form_signature(const Claim& claim, std::string_view policy,
                             std::string_view verification_key, Instant now);

// Like check_signature(), with the secret, and AWS's message for each fault. The hash of the
// payload is not compared with the body, which only the caller has. Errors: denied.
Result<void> verify(std::string_view method, std::string_view target, const HeaderList& headers,
                    const Claim& claim, std::string_view secret_access_key, Instant now);

}  // namespace trainyard::signing
