// Compares the role of a job with the entries of lists in the configuration: the allow lists of
// images, registry logins, file systems and volumes, and the egress rules of roles.
//
// An entry is the name of a role ("trainer") or its ARN; '*' stands for any text. The account of an
// ARN is not compared, because a server has one account, and documents and scripts often contain
// another one, such as 123456789012 of AWS's examples. The path of an ARN is compared.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::domain {

// Returns the name of a role without its path: the last part of its name or ARN.
std::string_view role_name(std::string_view role);

// Returns true if the entry of a list matches the role. `role_arn` is the ARN of the job's role;
// "": the job has no role, which no entry matches.
bool names_role(std::string_view entry, std::string_view role_arn);
bool any_names_role(const std::vector<std::string>& entries, std::string_view role_arn);

}  // namespace trainyard::domain
