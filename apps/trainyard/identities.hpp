// Reads the users, groups, roles, policies and keys of the config, and of a data directory whose
// server may be running. Returns the warnings about a config.
//
// Threads: called by the main thread. Errors: invalid, naming the entry of the config; those of the
// files and the ledger.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/config.hpp"
#include "operations/identity_store.hpp"
#include "policy/identities.hpp"

namespace trainyard::apps {

// Returns the config's identities, which the API joins with the ledger's. `keys`: the config's
// keys, or the generated key.
Result<policy::Identities> config_identities(const config::Config& config,
                                             const std::string& account,
                                             const std::vector<policy::ConfiguredKey>& keys);

// Reads all identities of a data directory without its server. The result includes the secrets of
// keys: a process that may read the directory can decrypt them in any case. Logs records that
// cannot be read, and leaves them out.
Result<policy::Identities> stored_identities(const std::string& data_directory,
                                             const config::Config& config);

// Returns the warnings about the config (config/warnings.hpp) on this machine.
std::vector<std::string> config_warnings(const config::Config& config,
                                         const policy::Identities& identities);

// Stores the times at which keys were last used. Logs an error; the next call retries.
void store_key_uses(api::IdentityStore& store);

}  // namespace trainyard::apps
