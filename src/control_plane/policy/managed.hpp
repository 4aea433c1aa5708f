// Defines the built-in managed policies, arn:aws:iam::aws:policy/NAME, which every account has.
//
// Names are AWS's, so that scripts which attach them work; the documents are our own and speak of
// the services that this server answers.
//
// Threads: immutable, made at the first call, shared for the life of the program.
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

// In the order of their names.
std::span<const ManagedPolicy> managed_policies();
// nullptr: not a built-in policy.
const ManagedPolicy* find_managed_policy(std::string_view arn);

}  // namespace trainyard::policy
