#include "trainyard/identities.hpp"

#include "base/log.hpp"
#include "policy/identity_seed.hpp"

namespace trainyard::apps {

Result<policy::Identities> config_identities(const config::Config& config,
                                             const std::string& account,
                                             const std::vector<policy::ConfiguredKey>& keys) {
  policy::IdentitySeed seed = config.identities;
  for (const policy::ConfiguredKey& key : keys) seed.keys.push_back({key.id, key.secret, key.user});
  return policy::identities_of(account, seed).in("reading the identities of the config");
}

void warn_of_idle_identities(const api::IdentityStore& store) {
  for (const std::string& warning : policy::seed_warnings(*store.snapshot()))
    log(Level::warning, "serve", warning, {});
}

void store_key_uses(api::IdentityStore& store) {
  if (const auto written = store.write_uses(); !written)
    log(Level::warning, "serve", "the last uses of access keys were not stored; retrying later",
        {{"why", written.error().message}});
}

}  // namespace trainyard::apps
