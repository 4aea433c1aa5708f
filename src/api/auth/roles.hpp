// Roles: what jobs run as, and what sessions speak for.
//
// A role is a name of the account. There are no policies yet (the README of this room), so every name may be taken up
// by SageMaker and by the account's principals, may do everything within the account, and nothing about it is kept.
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

// Whether a role may do `action` ("s3:PutObject"). The same answer as authorise() gives its sessions.
bool role_may(std::string_view role, std::string_view action);

}  // namespace trainyard::api
