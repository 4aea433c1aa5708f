// Parses the statements of a policy into the form in which they are evaluated. For policy's own
// sources and tests.
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

// Principal or NotPrincipal. ARNs are literal: only a whole "*" is a wildcard.
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
  std::vector<Pattern> resources;         // empty in a trust policy: any
  std::optional<PrincipalSet> principal;  // unset in an identity policy: the identity it belongs to
  std::vector<Condition> conditions;      // all must hold
};

}  // namespace trainyard::policy
