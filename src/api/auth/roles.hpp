// Converts between names, ARNs and ids of roles. Jobs run as a role, and a session acts for one.
//
// A role need not be defined: SageMaker and Batch run jobs as any name of the account. What a role may do is decided by
// authorizer.hpp.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::api {

// The last part of a role's name or ARN: the role without its path.
std::string_view role_name(std::string_view role);

// arn:aws:iam::ACCOUNT:role/NAME
std::string role_arn(std::string_view account, std::string_view name);

// arn:aws:sts::ACCOUNT:assumed-role/NAME/SESSION, for the role's name or ARN.
std::string assumed_role_arn(std::string_view account, std::string_view role, std::string_view session);

// "AROA..": the same for a name at all times, as opaque as AWS's.
std::string role_id(std::string_view role);

// The name of the role that `arn` names. Errors: invalid (no role's ARN), not_found (of another account).
Result<std::string> role_of_arn(std::string_view arn, std::string_view account);

// The role in the owner's ARN.
inline constexpr std::string_view kOwnerRole = "TrainyardOwner";
// Names that this server makes up: "Trainyard" and anything behind it, in any case. They cannot be assumed, and only the
// owner may pass them to a job.
bool is_reserved_role(std::string_view role);

}  // namespace trainyard::api
