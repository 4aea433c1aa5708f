// Signs and verifies requests by AWS Signature Version 4: sign and presign for our clients, verify for our server, which
// also takes version 4a (ECDSA, for a set of regions) and the forms of S3's POST. Pure: keys and instants are arguments.
//
// Algorithm: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
//
// Threads: pure functions. Errors: of verify: invalid (malformed), denied (wrong signature, expired, skewed);
// the message is what AWS would say.
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
  std::string session_token;  // "" for lasting keys
};

struct Scope {
  std::string region;
  std::string service;
};

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

std::string sha256_hex(std::string_view bytes);
// The same for bytes that come piece by piece. Confined to one thread.
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
// Equal in a time that does not depend on where they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

// The headers to add to a request: Authorization, X-Amz-Date, X-Amz-Security-Token, x-amz-content-sha256.
// `headers` holds those that will be sent and must be signed; Host is among them. `target` as it will be
// sent.
HeaderList sign(std::string_view method, std::string_view target, const HeaderList& headers,
                std::string_view payload_sha256, const Keys& keys, const Scope& scope, Instant now);

// The target with X-Amz-* query parameters and signature. Valid for `lifetime` from now.
std::string presign(std::string_view method, std::string_view target, std::string_view host, const Keys& keys,
                    const Scope& scope, Instant now, Duration lifetime);

enum class Algorithm {
  hmac,  // AWS4-HMAC-SHA256
  ecdsa  // AWS4-ECDSA-P256-SHA256: SigV4a
};

// What a request says of its signer, before anything is checked.
struct Claim {
  Algorithm algorithm = Algorithm::hmac;
  std::string access_key_id;
  std::string session_token;
  std::string date;        // "20261120"
  Scope scope;             // of SigV4a without a region, until the caller puts one of region_set there
  std::string region_set;  // of SigV4a, "*" or "eu-west-1,us-*"; see region_set_includes()
  std::string signature;
  std::vector<std::string> signed_headers;  // lower-case, ordered
  Instant signed_at;
  std::optional<Duration> lifetime;  // presigned
  bool in_query = false;             // the signature is in the target, not in the Authorization header
  // x-amz-content-sha256, or UNSIGNED-PAYLOAD, or STREAMING-..; "" = absent: then the client signed the hash
  // of the body, and the caller, who has it, puts that here before verify().
  std::string payload_sha256;
};

// Nothing: the request carries no signature at all (anonymous). Errors: invalid.
Result<std::optional<Claim>> read_claim(std::string_view target, const HeaderList& headers);

// Whether one of the names and patterns ('*' is any text) of X-Amz-Region-Set is the region's.
bool region_set_includes(std::string_view set, std::string_view region);

// Fields of a form (S3's POST). The signature is that of the policy's base64 text, and covers nothing else.
struct FormSignature {
  std::string algorithm, credential, date, token, signature;
};
// The claim lasts for kPresignMax; how long the form may be used is for its policy to say. Errors: invalid.
Result<Claim> read_form_claim(const FormSignature& form);

inline constexpr Duration kSkewMax = 15min;  // as AWS
inline constexpr Duration kPresignMax = 7 * 24h;

// The key that signs one day's requests to one service in one region: worth keeping (four HMACs make it).
std::string signing_key(std::string_view secret_access_key, std::string_view date, const Scope& scope);

// What judge() takes: signing_key(), or for SigV4a the signer's public key. Both are worth keeping.
std::string verification_key(std::string_view secret_access_key, const Claim& claim);

// What verify() finds, for callers that answer each fault in its own words.
enum class Verdict { good, wrong_signature, skewed, expired, headers_not_signed };
// Names, in lower case, of the headers that a request must sign and does not: Host, and every x-amz-* header, since
// services act upon those (x-amz-copy-source turns a PUT into a copy). A presigned request may leave
// x-amz-content-sha256 unsigned: the value is part of its signature anyway.
std::vector<std::string> headers_not_signed(const HeaderList& headers, const Claim& claim);
Verdict judge(std::string_view method, std::string_view target, const HeaderList& headers, const Claim& claim,
              std::string_view verification_key, Instant now);
// The same of a form, whose policy is given as it came, in base64.
Verdict judge_form(const Claim& claim, std::string_view policy, std::string_view verification_key,
                   Instant now);

// Checks the claim's signature with the secret, and its times against now. The payload's hash is not compared
// with the body here: the caller has the body. Errors: denied.
Result<void> verify(std::string_view method, std::string_view target, const HeaderList& headers,
                    const Claim& claim, std::string_view secret_access_key, Instant now);

}  // namespace trainyard::signing
