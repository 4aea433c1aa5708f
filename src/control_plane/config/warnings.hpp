// Finds settings that are valid, but probably mistakes: more capacity than the machine has, and
// limits and permissions of users that do not exist.
//
// Threads: pure. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "launch/launcher.hpp"
#include "policy/identities.hpp"

namespace trainyard::config {

// Returns a sentence for each such setting, with its key. `here` is the machine of the server.
// `identities` has the users, roles and keys of the config and of the ledger; so a warning ends
// when `aws iam` creates the user.
std::vector<std::string> warnings_of(const Config& config, const launch::Machine& here,
                                     const policy::Identities& identities);

}  // namespace trainyard::config
