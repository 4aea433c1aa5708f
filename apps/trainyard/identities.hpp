// Builds a snapshot of the users, roles, policies and keys of the config, which the API joins with
// those of the ledger.
//
// Threads: called by the main thread. Errors: invalid, naming the entry of the config.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/config.hpp"
#include "operations/identity_store.hpp"
#include "policy/identities.hpp"

namespace trainyard::apps {

// `keys`: those of the config, or the generated one.
Result<policy::Identities> config_identities(const config::Config& config,
                                             const std::string& account,
                                             const std::vector<policy::ConfiguredKey>& keys);

// Logs keys and users without permissions, with the line of the config that grants some.
void warn_of_idle_identities(const api::IdentityStore& store);

// Stores the times of the last uses of keys. Logs an error; the next call tries again.
void store_key_uses(api::IdentityStore& store);

}  // namespace trainyard::apps
