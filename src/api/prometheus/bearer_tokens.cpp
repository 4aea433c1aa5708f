#include "prometheus/bearer_tokens.hpp"

#include <string>

#include "base/sha256.hpp"
#include "base/text.hpp"

namespace trainyard::api::prometheus {
namespace {

constexpr std::string_view kScheme = "bearer";

}  // namespace

BearerTokens::BearerTokens(const Settings& settings, control::Control& control,
                           ConfiguredTokens configured)
    : settings_(settings), principals_(settings, control), configured_(std::move(configured)) {}

std::optional<Principal> BearerTokens::find(std::string_view token, signing::TokenUse use) const {
  if (token.empty() || token.size() > signing::kTokenBytesMax) return std::nullopt;
  // Digests of equal length, so that the time of a comparison does not depend on the token.
  const Digest digest = sha256(token);
  const ConfiguredToken* found = nullptr;
  const auto configured = configured_ ? configured_() : std::vector<ConfiguredToken>();
  for (const ConfiguredToken& each : configured)
    if (equal_in_constant_time(digest, sha256(each.token)) && !found) found = &each;
  if (found) return use == signing::TokenUse::scrape ? of_user(found->user) : std::nullopt;
  const auto parsed = signing::parse_metrics_token(token);
  if (!parsed) return std::nullopt;
  Principal principal;
  const auto secret = principals_.find_by_key(parsed->access_key_id, principal);
  if (!secret) return std::nullopt;
  const std::string expected = signing::metrics_token(parsed->access_key_id, *secret, use);
  if (!equal_in_constant_time(digest, sha256(expected))) return std::nullopt;
  principal.access_key_id = parsed->access_key_id;
  return principal;
}

std::optional<Principal> BearerTokens::of_user(const std::string& name) const {
  const auto identities = settings_.identities ? settings_.identities() : nullptr;
  Delegation described;
  described.kind = PrincipalKind::owner;
  described.name = name;
  if (!name.empty() && identities)
    if (const policy::User* user = identities->find_user(name)) {
      described.kind = PrincipalKind::user;
      described.id = user->id;
    }
  if (name.empty()) {
    if (identities)
      for (const auto& [id, key] : identities->keys())
        if (key->owner && key->active) described.name = key->user;
    if (!identities && !settings_.keys.empty()) described.name = settings_.keys.front().user;
  }
  auto principal = principals_.find_stored(described, {});
  return principal ? std::optional(*std::move(principal)) : std::nullopt;
}

std::optional<std::string_view> bearer_token(const net::RequestHead& head) {
  const std::string_view value = trim(head.headers.get("authorization"));
  const std::string_view scheme = value.substr(0, value.find(' '));
  if (!equals_ignoring_case(scheme, kScheme)) return std::nullopt;
  return trim(value.substr(scheme.size()));
}

}  // namespace trainyard::api::prometheus
