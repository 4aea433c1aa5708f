// Finds settings that are valid, but probably not what the operator wants: more capacity than the
// machine has, and limits and permissions of users who do not exist.
//
// Threads: pure. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "launch/launcher.hpp"
#include "policy/identities.hpp"

namespace trainyard::config {

// Returns a sentence for each such setting, which names its key. `here`: the machine that the
// server runs on. `identities`: the users, roles and keys of the config and of the ledger; users
// that `aws iam` makes later end the warning.
std::vector<std::string> warnings_of(const Config& config, const launch::Machine& here,
                                     const policy::Identities& identities);

}  // namespace trainyard::config
