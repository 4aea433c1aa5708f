// Builds a snapshot of the users, roles, policies and keys of the config, which the API joins with those of
// the ledger.
//
// Threads: functions for the main thread. Errors: invalid, naming the entry of the config.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/config.hpp"
#include "operations/identity_store.hpp"
#include "policy/identities.hpp"

namespace trainyard::apps {

// `keys`: those of the config, or the one that was made up.
Result<policy::Identities> config_identities(const config::Config& config, const std::string& account,
                                             const std::vector<policy::ConfiguredKey>& keys);

// Logs keys and users without permissions, with the line that changes it.
void warn_of_idle_identities(const api::IdentityStore& store);

// Logs when the last uses of keys could not be stored; they are retried.
void store_key_uses(api::IdentityStore& store);

}  // namespace trainyard::apps
