// Converts the role in a request to the role that its job runs as.
//
// A server has one account. Documents and scripts name roles of other accounts, such as
// 123456789012 of AWS's examples. In jobs and simulations such an ARN stands for this account's
// role of the same name. Permissions are checked on that role, so another account in an ARN grants
// nothing. A role's name is unique in its account, so a defined role also has its own path,
// whatever path the ARN has. Everything that depends on a job's role (permissions, keys, allow
// lists of the configuration) uses the converted ARN.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "operations/services.hpp"

namespace trainyard::api {

// Replaces the account in the ARN of a role by `account`. Returns other texts unchanged.
std::string own_role(std::string_view arn, std::string_view account);

// Returns the ARN of the defined role with the name in `arn`, which has that role's path. Returns
// `arn` if the role is not defined. `identities` may be nullptr.
std::string canonical_role(const policy::Identities* identities, const std::string& arn);

// Returns the role of a new job. Errors: invalid, if the text is not the ARN of a role.
Result<std::string> job_role(const Settings& settings, std::string_view account,
                             const std::string& arn);

}  // namespace trainyard::api
