#include "auth/delegated_access.hpp"

#include <unordered_map>

#include "auth/authorizer.hpp"
#include "auth/delegation.hpp"
#include "auth/principals.hpp"
#include "base/check.hpp"
#include "base/thread_safety.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kCachedPrincipals = 1024;  // principals with keys: some KiB each

}  // namespace

struct DelegatedAccess::State {
  State(const Settings& settings, const Services& services)
      : settings(settings),
        services(services),
        principals(this->settings, services.control),
        authorizer(this->settings, this->services) {}

  const Settings settings;
  const Services services;
  const Principals principals;
  const Authorizer authorizer;

  struct Made {
    signing::Keys keys;
    Instant at;
  };
  mutable Mutex mutex;
  mutable std::unordered_map<std::string, Made> made GUARDED_BY(mutex);  // by record

  // The record of the first owner, for old campaigns without a record: only an owner could start
  // them.
  std::string owner_record() const {
    Delegation owner{PrincipalKind::owner};
    if (!settings.keys.empty()) owner.name = settings.keys.front().user;
    if (settings.identities) {
      const auto identities = settings.identities();
      for (const auto& [id, key] : identities->keys())
        if (key->owner && key->active) {
          owner.name = key->user;
          break;
        }
    }
    const auto record = format_delegation(owner);
    CHECK(record, "the record of an owner fits kDelegationBytesMax");
    return *record;
  }
};

Result<campaign::Principal> record_of(const Context& context, const std::string& campaign_arn) {
  Delegation delegation = delegation_of(context);
  if (!campaign_arn.empty()) delegation.invoked_by = campaign_arn;
  auto formatted = TRY(format_delegation(delegation));
  return campaign::Principal{context.principal.arn, std::move(formatted)};
}

DelegatedAccess::DelegatedAccess(const Settings& settings, const Services& services)
    : state_(std::make_unique<State>(settings, services)) {}
DelegatedAccess::~DelegatedAccess() = default;

signing::Keys DelegatedAccess::keys_for(const campaign::Principal& principal) const {
  const std::string record = principal.record.empty() ? state_->owner_record() : principal.record;
  const Instant now = state_->services.clock.now();
  const MutexLock lock(state_->mutex);
  const auto found = state_->made.find(record);
  // The clock may have been set back.
  if (found != state_->made.end() && now >= found->second.at &&
      now - found->second.at < kKeysLifetime / 2)
    return found->second.keys;
  auto keys = issue_delegated_keys(state_->settings.temporary_key_secret, record, now,
                                   kKeysLifetime, state_->services.random);
  if (state_->made.size() >= kCachedPrincipals) state_->made.clear();
  State::Made made{{std::move(keys.access_key_id), std::move(keys.secret_access_key),
                    std::move(keys.session_token)},
                   now};
  return state_->made.insert_or_assign(record, std::move(made)).first->second.keys;
}

Result<void> DelegatedAccess::authorise(const campaign::Principal& principal,
                                        std::string_view action, const std::string& resource,
                                        const std::string& region) const {
  const Instant now = state_->services.clock.now();
  const std::string record = principal.record.empty() ? state_->owner_record() : principal.record;
  const auto delegation = TRY(parse_delegation(record).in("reading the principal of a campaign"));
  Context context{.principal = TRY(state_->principals.find_stored(delegation, now)),
                  .region = region,
                  .now = now};
  context.source_ip = delegation.source_ip;
  context.secure = delegation.secure;
  const std::string arn = resource == "*" ? resource
                                          : "arn:aws:trainyard:" + region + ":" +
                                                context.principal.account + ":" + resource;
  if (const auto refused =
          state_->authorizer.check(context, shapes::trainyard::kService, std::string(action), arn))
    return denied(refused->message);
  return {};
}

}  // namespace trainyard::api
