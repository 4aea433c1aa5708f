// Signs and verifies requests by AWS Signature Version 4: sign and presign for our clients, verify
// for our server, which also accepts version 4a (ECDSA, for a set of regions) and the forms of S3's
// POST. Pure: keys and instants are arguments.
//
// Algorithm:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
//
// Threads: pure functions. Errors: of verify: invalid (malformed), denied (wrong signature,
// expired, skewed); the message is AWS's.
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
  std::string session_token;  // "" for long-term keys
};

struct Scope {
  std::string region;
  std::string service;
};

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

std::string sha256_hex(std::string_view bytes);
// Computes the same for bytes that arrive in pieces. Confined to one thread.
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

// Returns the headers to add to a request: Authorization, X-Amz-Date, X-Amz-Security-Token,
// x-amz-content-sha256. `headers` has those that will be sent and must be signed, including Host.
// `target` is in its final form.
HeaderList sign(std::string_view method, std::string_view target, const HeaderList& headers,
                std::string_view payload_sha256, const Keys& keys, const Scope& scope, Instant now);

// Returns the target with X-Amz-* query parameters and signature. Valid for `lifetime` from now.
std::string presign(std::string_view method, std::string_view target, std::string_view host,
                    const Keys& keys, const Scope& scope, Instant now, Duration lifetime);

enum class Algorithm {
  hmac,  // AWS4-HMAC-SHA256
  ecdsa  // AWS4-ECDSA-P256-SHA256: SigV4a
};

// The signer as a request names it, before anything is checked.
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
  // x-amz-content-sha256, or UNSIGNED-PAYLOAD, or STREAMING-..; "" = absent: then the client signed
  // the hash of the body, and the caller, who has the body, sets it before verify().
  std::string payload_sha256;
};

// Returns nothing for a request without a signature (anonymous). Errors: invalid.
Result<std::optional<Claim>> read_claim(std::string_view target, const HeaderList& headers);

// True if one of the names and patterns ('*' is any text) of X-Amz-Region-Set matches the region.
bool region_set_includes(std::string_view set, std::string_view region);

// Fields of a form (S3's POST). The signature covers the policy's base64 text, and nothing else.
struct FormSignature {
  std::string algorithm, credential, date, token, signature;
};
// The claim lasts for kPresignMax; the form's policy decides how long it may be used. Errors:
// invalid.
Result<Claim> read_form_claim(const FormSignature& form);

inline constexpr Duration kSkewMax = 15min;  // as AWS
inline constexpr Duration kPresignMax = 7 * 24h;

// Returns the key that signs one day's requests to one service in one region: worth caching (four
// HMACs).
std::string signing_key(std::string_view secret_access_key, std::string_view date,
                        const Scope& scope);

// Returns the key for judge(): signing_key(), or for SigV4a the signer's public key. Both are worth
// caching.
std::string verification_key(std::string_view secret_access_key, const Claim& claim);

// The result of verify(), for callers with their own message for each fault.
enum class Verdict { good, wrong_signature, skewed, expired, headers_not_signed };
// Returns the names, in lower case, of the headers that a request must sign and does not: Host, and
// every x-amz-* header, since services act on those (x-amz-copy-source turns a PUT into a copy). A
// presigned request may leave x-amz-content-sha256 unsigned: the value is part of its signature
// anyway.
std::vector<std::string> headers_not_signed(const HeaderList& headers, const Claim& claim);
Verdict judge(std::string_view method, std::string_view target, const HeaderList& headers,
              const Claim& claim, std::string_view verification_key, Instant now);
// Does the same for a form, whose policy is given as received, in base64.
Verdict judge_form(const Claim& claim, std::string_view policy, std::string_view verification_key,
                   Instant now);

// Checks the claim's signature with the secret, and its times against now. The payload's hash is
// not compared with the body, which only the caller has. Errors: denied.
Result<void> verify(std::string_view method, std::string_view target, const HeaderList& headers,
                    const Claim& claim, std::string_view secret_access_key, Instant now);

}  // namespace trainyard::signing
