// Compares the role of a job with the roles that a list of the configuration names: the allow lists
// of images, registry logins, file systems and volumes, and the egress rules of roles.
//
// An entry is a role's name ("trainer") or its ARN, in which '*' stands for any text. The account
// of an ARN is not compared: a server has one account, and documents and scripts name roles of
// another, such as 123456789012, the account of AWS's examples. The path of an ARN is compared.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::domain {

// The name without its path: the last part of a role's name or ARN.
std::string_view role_name(std::string_view role);

// Returns whether the entry of a list names the role. `role_arn`: of the job; "": no role, which no
// entry names.
bool names_role(std::string_view entry, std::string_view role_arn);
bool any_names_role(const std::vector<std::string>& entries, std::string_view role_arn);

}  // namespace trainyard::domain
