// Defines the built-in managed policies, arn:aws:iam::aws:policy/NAME, which every account has.
//
// They have the names of AWS, so that scripts that attach them work. The documents were written for
// the services of this server.
//
// Threads: immutable; made at the first call and shared until the program ends.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "policy/policy.hpp"

namespace trainyard::policy {

struct ManagedPolicy {
  std::string_view name;
  std::string_view description;
  std::string_view document;  // JSON
  std::shared_ptr<const Policy> policy;

  std::string arn() const;
};

// Returns the policies sorted by name.
std::span<const ManagedPolicy> managed_policies();
// Returns nullptr if the ARN is not one of a built-in policy.
const ManagedPolicy* find_managed_policy(std::string_view arn);

}  // namespace trainyard::policy
