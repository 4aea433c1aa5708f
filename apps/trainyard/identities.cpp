#include "trainyard/identities.hpp"

#include "base/log.hpp"
#include "config/warnings.hpp"
#include "ledger/ledger.hpp"
#include "policy/identity_records.hpp"
#include "policy/identity_seed.hpp"
#include "preflight/preflight.hpp"
#include "signing/sealed_text.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/ledger_role.hpp"

namespace trainyard::apps {

Result<policy::Identities> config_identities(const config::Config& config,
                                             const std::string& account,
                                             const std::vector<policy::ConfiguredKey>& keys) {
  policy::IdentitySeed seed = config.identities;
  for (const policy::ConfiguredKey& key : keys) seed.keys.push_back({key.id, key.secret, key.user});
  return policy::identities_of(account, seed).in("reading the identities of the config");
}

Result<policy::Identities> stored_identities(const std::string& data_directory,
                                             const config::Config& config) {
  const Identity identity = TRY(read_identity(data_directory));
  policy::Identities all = TRY(config_identities(
      config, identity.account, config.access_keys.empty() ? identity.keys : config.access_keys));
  const std::string sealing_key = TRY(read_sealing_key(data_directory));
  const auto unseal = [&](const std::string& sealed, const std::string& key_id) {
    return signing::unseal(sealing_key, sealed, key_id);
  };
  const auto database = ledger_database_of(config);
  const auto records = TRY((database ? ledger::read_postgres_records(*database)
                                     : ledger::read_records(data_directory + "/ledger.db"))
                               .in("reading the ledger"));
  for (const auto& [name, record] : records.all)
    if (const auto added = policy::add_record(all, name, record->document, unseal); !added)
      log(Level::warning, "identities", "a record of an identity cannot be read",
          {{"record", name.first + "/" + name.second}, {"why", added.error().message}});
  return all;
}

std::vector<std::string> config_warnings(const config::Config& config,
                                         const policy::Identities& identities) {
  const preflight::MachineCapacity here = preflight::machine_capacity();
  return config::warnings_of(config, {here.name, here.cpus, here.memory_bytes, here.gpus},
                             identities);
}

void store_key_uses(api::IdentityStore& store) {
  if (const auto written = store.write_uses(); !written)
    log(Level::warning, "serve", "the last uses of access keys were not stored; retrying later",
        {{"why", written.error().message}});
}

}  // namespace trainyard::apps
