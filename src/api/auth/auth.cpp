#include "api/auth/auth.hpp"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "api/auth/roles.hpp"
#include "api/auth/temporary_keys.hpp"
#include "base/text.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kCachedKeysMax =
    4096;  // a day's (key, region, service); a job's keys are three or four of them
constexpr size_t kRegionBytesMax = 64;  // region names are file names of ours, too
constexpr std::string_view kOwnerRole = "TrainyardOwner";

bool is_region(std::string_view text) {
  if (text.empty() || text.size() > kRegionBytesMax || text.front() == '-') return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Principal principal_of(const Settings& settings, std::string_view access_key_id, std::string_view user,
                       const RoleSession* session) {
  Principal out;
  out.account = settings.account;
  out.access_key_id = access_key_id;
  const std::string_view role = session ? role_name(session->role_arn) : kOwnerRole;
  const std::string_view name = session ? std::string_view(session->session_name) : user;
  out.name = session ? role : user;
  out.arn = assumed_role_arn(settings.account, role, name);
  out.user_id = role_id(role) + ":" + std::string(name);
  if (session) out.role_arn = session->role_arn;
  return out;
}

}  // namespace

struct Authenticator::KeyCache {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::string>
      keys;  // "id/date/region/service" -> signing key; guarded by mutex

  std::string get(std::string_view secret, const signing::Claim& claim) {
    std::string name = claim.access_key_id;
    name.append("/")
        .append(claim.date)
        .append("/")
        .append(claim.scope.region)
        .append("/")
        .append(claim.scope.service);
    {
      const std::shared_lock lock(mutex);
      if (const auto found = keys.find(name); found != keys.end()) return found->second;
    }
    std::string key = signing::signing_key(secret, claim.date, claim.scope);
    const std::unique_lock lock(mutex);
    if (keys.size() >= kCachedKeysMax) keys.clear();  // yesterday's and finished jobs' go with it
    keys.emplace(std::move(name), key);
    return key;
  }
};

Authenticator::Authenticator(const Settings& settings)
    : settings_(settings), keys_(std::make_unique<KeyCache>()) {}
Authenticator::~Authenticator() = default;

Outcome<Signer> Authenticator::check_head(const shapes::Service& service, const host::RequestHead& head,
                                          Instant now) const {
  auto read = signing::read_claim(head.target, head.headers.fields());
  if (!read) return malformed_authentication(service, read.error().message);
  if (!*read) return missing_authentication(service);
  Signer signer;
  signing::Claim& claim = signer.claim = std::move(**read);
  if (!is_region(claim.scope.region))
    return malformed_authentication(service, "Credential should be scoped to a valid region, not '" +
                                                 shorten(claim.scope.region, 80) + "'.");
  if (claim.scope.service != service.scope)
    return malformed_authentication(
        service, "Credential should be scoped to correct service: '" + std::string(service.scope) + "'.");

  std::string secret;
  const LastingKey* lasting = nullptr;
  for (const auto& key : settings_.keys)
    if (key.id == claim.access_key_id) lasting = &key;
  if (lasting) {
    if (!claim.session_token.empty()) return token_invalid(service);
    secret = lasting->secret;
    signer.principal = principal_of(settings_, lasting->id, lasting->user, nullptr);
  } else {
    if (claim.session_token.empty()) return unknown_key(service, claim.access_key_id);
    ResolvedKeys keys =
        resolve_keys(settings_.temporary_key_secret, claim.access_key_id, claim.session_token, now);
    if (keys.state == ResolvedKeys::State::forged) return token_invalid(service);
    if (keys.state == ResolvedKeys::State::expired) return token_expired(service);
    secret = std::move(keys.secret_access_key);
    signer.principal = principal_of(settings_, claim.access_key_id, "", &keys.session);
  }

  signer.signing_key = keys_->get(secret, claim);
  if (!claim.payload_sha256.empty()) {
    if (auto failure = judge(service, head, signer, now)) return std::move(*failure);
    signer.verified = true;
  }
  return signer;
}

std::optional<Failure> Authenticator::check_body(const shapes::Service& service,
                                                 const host::RequestHead& head, Signer& signer,
                                                 const std::string& body, Instant now) const {
  // The hash that was signed is the head's word, or, for clients that send none, that of the body as it came.
  signing::Claim& claim = signer.claim;
  if (!signer.verified) {
    claim.payload_sha256 = signing::sha256_hex(body);
    if (auto failure = judge(service, head, signer, now)) return failure;
    signer.verified = true;
  } else if (is_sha256(claim.payload_sha256) &&
             !signing::equal_in_constant_time(claim.payload_sha256, signing::sha256_hex(body))) {
    return body_changed(service);
  }
  return {};
}

Outcome<Signer> Authenticator::check(const shapes::Service& service, const host::RequestHead& head,
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

std::optional<Failure> Authenticator::judge(const shapes::Service& service, const host::RequestHead& head,
                                            const Signer& signer, Instant now) const {
  const signing::Claim& claim = signer.claim;
  switch (signing::judge(head.method, head.target, head.headers.fields(), claim, signer.signing_key, now)) {
    case signing::Verdict::good:
      break;
    case signing::Verdict::skewed:
      return request_skewed(
          service,
          claim.signed_at < now
              ? "Signature expired: " + to_basic_iso8601(claim.signed_at) + " is now earlier than " +
                    to_basic_iso8601(now - signing::kSkewMax) + " (" + to_basic_iso8601(now) + " - 15 min.)"
              : "Signature not yet current: " + to_basic_iso8601(claim.signed_at) + " is still later than " +
                    to_basic_iso8601(now + signing::kSkewMax) + " (" + to_basic_iso8601(now) + " + 15 min.)");
    case signing::Verdict::expired:
      return request_expired(service);
    case signing::Verdict::headers_not_signed:
      return unsigned_headers(service, signing::headers_not_signed(head.headers.fields(), claim));
    case signing::Verdict::wrong_signature:
      return wrong_signature(service);
  }
  return {};
}

bool authorise(const Principal& principal, const shapes::OperationShape&) {
  // No policies yet: what a role may not do on AWS, its policy says, and by default SageMaker's execution
  // role may start and stop jobs, read and write objects, logs and metrics. Every principal is of the one
  // account.
  return !principal.account.empty();
}

}  // namespace trainyard::api
