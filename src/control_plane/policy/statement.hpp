// Defines the parsed form of a policy's statements. Only this module and its tests include it.
//
// Threads: immutable after parsing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/condition.hpp"
#include "policy/pattern.hpp"

namespace trainyard::policy {

enum class Effect { allow, deny };

// The element Principal or NotPrincipal. ARNs are literal: only "*" as a whole is a wildcard.
struct PrincipalSet {
  bool everyone = false;               // "*"
  std::vector<std::string> accounts;   // from "123456789012" and arn:aws:iam::123456789012:root
  std::vector<std::string> arns;       // users, roles, role sessions, federated users
  std::vector<std::string> services;   // sagemaker.amazonaws.com
  std::vector<std::string> federated;  // identity providers
};

struct Statement {
  std::string sid;
  Effect effect = Effect::deny;
  bool not_action = false, not_resource = false, not_principal = false;
  std::vector<Pattern> actions;           // in lower case
  std::vector<Pattern> resources;         // in a trust policy empty: any
  std::optional<PrincipalSet> principal;  // nullopt in an identity policy: its identity
  std::vector<Condition> conditions;      // all must be true
};

}  // namespace trainyard::policy
