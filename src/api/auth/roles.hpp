// Converts between names, ARNs and ids of roles. Jobs and sessions have a role.
//
// A role need not be defined: SageMaker and Batch run jobs as any role name of the account.
// authorizer.hpp decides what a role may do.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "domain/role.hpp"

namespace trainyard::api {

using domain::role_name;

// arn:aws:iam::ACCOUNT:role/NAME
std::string role_arn(std::string_view account, std::string_view name);

// arn:aws:sts::ACCOUNT:assumed-role/NAME/SESSION, for the role's name or ARN.
std::string assumed_role_arn(std::string_view account, std::string_view role,
                             std::string_view session);

// Returns the id of an undefined role: "AROA..", derived from the name.
std::string role_id(std::string_view role);

// Returns the name of the role. Errors: invalid (not the ARN of a role), not_found (a role of
// another account).
Result<std::string> role_of_arn(std::string_view arn, std::string_view account);

// The name of the role in the owner's ARN.
inline constexpr std::string_view kOwnerRole = "TrainyardOwner";
// Returns whether the name begins with "Trainyard", in any case. Such roles cannot be assumed, and
// only the owner may pass them to a job.
bool is_reserved_role(std::string_view role);

}  // namespace trainyard::api
