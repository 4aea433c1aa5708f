#include "auth/auth.hpp"

#include <algorithm>
#include <unordered_map>

#include "auth/delegation.hpp"
#include "auth/temporary_keys.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::api {
namespace {

// one per key, day, region and service; a job needs three or four
constexpr size_t kCachedKeysMax = 4096;
constexpr size_t kRegionBytesMax = 64;  // region names are also file names

bool is_region(std::string_view text) {
  if (text.empty() || text.size() > kRegionBytesMax || text.front() == '-') return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

// boto3 without configuration presigns URLs for us-east-1 with version 2. The client gets an error
// that names the remedy.
bool is_signature_version_2(const net::RequestHead& head) {
  return head.headers.get("authorization").starts_with("AWS ") ||
         head.query().find("AWSAccessKeyId=") != std::string_view::npos;
}

}  // namespace

struct Authenticator::KeyCache {
  SharedMutex mutex;
  std::unordered_map<std::string, std::string> keys
      GUARDED_BY(mutex);  // "id/date/region/service/secret" -> key

  std::string get(std::string_view secret, const signing::Claim& claim) {
    std::string name = claim.access_key_id;
    // SigV4a has one key pair for all days and regions.
    if (claim.algorithm == signing::Algorithm::ecdsa)
      return get(name.append("/ecdsa/").append(secret), secret, claim);
    name.append("/")
        .append(claim.date)
        .append("/")
        .append(claim.scope.region)
        .append("/")
        .append(claim.scope.service)
        .append("/")
        .append(secret);  // a key with a new secret has a new signing key
    return get(std::move(name), secret, claim);
  }

 private:
  std::string get(std::string name, std::string_view secret, const signing::Claim& claim) {
    {
      const ReaderLock lock(mutex);
      if (const auto found = keys.find(name); found != keys.end()) return found->second;
    }
    std::string key = signing::verification_key(secret, claim);
    const WriterLock lock(mutex);
    // removes keys of past days and finished jobs
    if (keys.size() >= kCachedKeysMax) keys.clear();
    keys.emplace(std::move(name), key);
    return key;
  }
};

Authenticator::Authenticator(const Settings& settings, control::Control& control)
    : settings_(settings), principals_(settings, control), keys_(std::make_unique<KeyCache>()) {}
Authenticator::~Authenticator() = default;

// Returns a region of this server that is in the set, preferring the default region, which is the
// last one. Returns nothing if the set has none of them.
std::optional<std::string> Authenticator::region_of(std::string_view region_set) const {
  for (auto region = settings_.regions.rbegin(); region != settings_.regions.rend(); ++region)
    if (signing::region_set_includes(region_set, *region)) return *region;
  if (settings_.regions.empty() && is_region(region_set)) return std::string(region_set);
  return std::nullopt;
}

// Finds the principal that the claim names, and the key to verify it with.
std::optional<Failure> Authenticator::resolve(const shapes::Service& service, Signer& signer,
                                              Instant now) const {
  signing::Claim& claim = signer.claim;
  if (claim.algorithm == signing::Algorithm::ecdsa) {
    auto region = region_of(claim.region_set);
    if (!region)
      return malformed_authentication(service, "X-Amz-Region-Set '" +
                                                   shorten(claim.region_set, 80) +
                                                   "' does not include a region of this server.");
    claim.scope.region = std::move(*region);
  }
  if (!is_region(claim.scope.region))
    return malformed_authentication(service,
                                    "Credential should be scoped to a valid region, not '" +
                                        shorten(claim.scope.region, 80) + "'.");
  if (claim.scope.service != service.scope)
    return malformed_authentication(service, "Credential should be scoped to correct service: '" +
                                                 std::string(service.scope) + "'.");

  std::string secret;
  if (auto lasting = principals_.find_by_key(claim.access_key_id, signer.principal)) {
    if (!claim.session_token.empty()) return token_invalid(service);
    secret = std::move(*lasting);
  } else {
    if (claim.session_token.empty()) return unknown_key(service, claim.access_key_id);
    ResolvedKeys keys =
        resolve_keys(settings_.temporary_key_secret, claim.access_key_id, claim.session_token, now);
    if (keys.state == ResolvedKeys::State::forged) return token_invalid(service);
    if (keys.state == ResolvedKeys::State::expired) return token_expired(service);
    secret = std::move(keys.secret_access_key);
    if (!keys.delegation.empty()) {
      const auto delegation = parse_delegation(keys.delegation);
      auto principal = delegation ? principals_.find_stored(*delegation, now) : delegation.error();
      if (!principal) return access_denied(service, principal.error().message);
      signer.principal = std::move(*principal);
    } else {
      auto principal = principals_.find_by_session(std::move(keys.session));
      if (!principal) return token_expired(service);
      signer.principal = std::move(*principal);
    }
  }
  signer.principal.access_key_id = claim.access_key_id;
  signer.signing_key = keys_->get(secret, claim);
  return {};
}

Outcome<Signer> Authenticator::check_head(const shapes::Service& service,
                                          const net::RequestHead& head, Instant now) const {
  auto read = signing::read_claim(head.target, head.headers.fields());
  if (!read) return malformed_authentication(service, read.error().message);
  if (!*read && is_signature_version_2(head))
    return invalid_request(
        "The authorization mechanism you have provided is not supported. Please use "
        "AWS4-HMAC-SHA256.");
  if (!*read) return missing_authentication(service);
  Signer signer;
  signer.claim = std::move(**read);
  if (auto failure = resolve(service, signer, now)) return std::move(*failure);
  if (!signer.claim.payload_sha256.empty()) {
    if (auto failure = check_signature(service, head, signer, now)) return std::move(*failure);
    signer.verified = true;
  }
  if (auto failure = act_on_behalf(service, head, signer, now)) return std::move(*failure);
  return signer;
}

Outcome<Signer> Authenticator::check_form(const shapes::Service& service,
                                          const signing::FormSignature& form,
                                          std::string_view policy, Instant now) const {
  auto claim = signing::read_form_claim(form);
  if (!claim) return malformed_authentication(service, claim.error().message);
  Signer signer;
  signer.claim = std::move(*claim);
  if (auto failure = resolve(service, signer, now)) return std::move(*failure);
  const auto verdict = signing::check_form_signature(signer.claim, policy, signer.signing_key, now);
  if (auto failure = apply_verdict(verdict, service, signer, {}, now)) return std::move(*failure);
  signer.verified = true;
  return signer;
}

std::optional<Failure> Authenticator::act_on_behalf(const shapes::Service& service,
                                                    const net::RequestHead& head, Signer& signer,
                                                    Instant now) const {
  std::string_view described;
  size_t count = 0;
  for (const auto& [name, value] : head.headers.fields())
    if (equals_ignoring_case(name, kDelegationHeader)) described = value, ++count;
  if (count == 0) return {};
  const Principal peer = signer.principal;
  const auto refuse = [&](const std::string& why) {
    return access_denied(
        service, "User: " + peer.arn +
                     " is not authorized to make requests on behalf of other principals" + why);
  };
  // The description is parsed only after the signature, which covers it, is verified.
  if (!signer.verified || count > 1 || signer.claim.in_query) return refuse("");
  if (!signer.claim.session_token.empty()) return refuse(" with a session's keys");
  const auto peers = settings_.peers();
  if (std::ranges::find(peers, peer.access_key_id, &policy::Peer::access_key_id) == peers.end())
    return refuse("");
  const auto text = from_base64(described);
  const auto delegation = text ? parse_delegation(*text) : Result<Delegation>(text.error());
  if (!delegation) return refuse(": " + delegation.error().message);
  auto principal = principals_.find_for_peer(*delegation, peer, now);
  if (!principal) return access_denied(service, principal.error().message);
  signer.principal = *std::move(principal);
  signer.principal.access_key_id = peer.access_key_id;
  return {};
}

std::optional<Failure> Authenticator::check_body(const shapes::Service& service,
                                                 const net::RequestHead& head, Signer& signer,
                                                 const std::string& body, Instant now) const {
  // The signed hash is the one in the head, or, if the client sends none, that of the received
  // body.
  signing::Claim& claim = signer.claim;
  if (!signer.verified) {
    claim.payload_sha256 = signing::sha256_hex(body);
    if (auto failure = check_signature(service, head, signer, now)) return failure;
    signer.verified = true;
  } else if (is_hex_digest(claim.payload_sha256) &&
             !equal_in_constant_time(claim.payload_sha256, signing::sha256_hex(body))) {
    return body_changed(service);
  }
  return {};
}

Outcome<Signer> Authenticator::check(const shapes::Service& service, const net::RequestHead& head,
                                     const std::string* body, Instant now) const {
  auto signer = check_head(service, head, now);
  if (!signer) return signer;
  if (body) {
    if (auto failure = check_body(service, head, *signer, *body, now)) return std::move(*failure);
  } else if (!signer->verified) {
    return invalid_request("Missing required header for this request: x-amz-content-sha256");
  }
  return signer;
}

std::optional<Failure> Authenticator::check_signature(const shapes::Service& service,
                                                      const net::RequestHead& head,
                                                      const Signer& signer, Instant now) const {
  const auto& headers = head.headers.fields();
  const auto verdict = signing::check_signature(head.method, head.target, headers, signer.claim,
                                                signer.signing_key, now);
  return apply_verdict(verdict, service, signer, headers, now);
}

// Returns the failure for a verdict. For a valid signature it records the use of the key, and
// returns nothing.
std::optional<Failure> Authenticator::apply_verdict(signing::Verdict verdict,
                                                    const shapes::Service& service,
                                                    const Signer& signer,
                                                    const signing::HeaderList& headers,
                                                    Instant now) const {
  const signing::Claim& claim = signer.claim;
  switch (verdict) {
    case signing::Verdict::valid:
      break;
    case signing::Verdict::skewed:
      return request_skewed(
          service, claim.signed_at < now
                       ? "Signature expired: " + to_basic_iso8601(claim.signed_at) +
                             " is now earlier than " + to_basic_iso8601(now - signing::kSkewMax) +
                             " (" + to_basic_iso8601(now) + " - 15 min.)"
                       : "Signature not yet current: " + to_basic_iso8601(claim.signed_at) +
                             " is still later than " + to_basic_iso8601(now + signing::kSkewMax) +
                             " (" + to_basic_iso8601(now) + " + 15 min.)");
    case signing::Verdict::expired:
      return request_expired(service);
    case signing::Verdict::headers_not_signed:
      return unsigned_headers(service, signing::headers_not_signed(headers, claim));
    case signing::Verdict::wrong_signature:
      return wrong_signature(service);
  }
  if (settings_.key_used && claim.session_token.empty())
    settings_.key_used(claim.access_key_id, now, claim.scope.region, claim.scope.service);
  return {};
}

}  // namespace trainyard::api
