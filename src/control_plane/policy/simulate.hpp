// Computes the results of IAM's SimulatePrincipalPolicy and SimulateCustomPolicy: the decision of
// evaluate(), the statements that led to it with their positions in the documents, and the
// condition keys that the request lacks.
//
// Threads: pure, call from anywhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/evaluate.hpp"

namespace trainyard::policy {

// A policy with the name by which the result refers to it.
struct NamedPolicy {
  std::string id;  // "readers", "PolicyInputList.1"
  // user, group, role, aws-managed, user-managed, resource, none: IAM's SourcePolicyType
  std::string type;
  const Policy* policy = nullptr;
};

struct SimulatedPolicies {
  std::vector<NamedPolicy> identity;
  std::vector<NamedPolicy> resource;
  std::vector<NamedPolicy> boundary;  // at most one
};

struct TextPosition {
  size_t line = 1, column = 1;
  bool operator==(const TextPosition&) const = default;
};

struct MatchedStatement {
  std::string policy_id, policy_type;
  std::string statement_id;
  TextPosition begin, end;  // of the statement in its document; end is after its last character
};

struct Simulation {
  Decision decision;
  // The statements that deny after an explicit denial, otherwise the statements that allow.
  std::vector<MatchedStatement> matched;
  // Condition keys that the policies read and the request does not have.
  std::vector<std::string> missing_keys;
  std::optional<bool> allowed_by_boundary;  // nullopt: no boundary
};

Simulation simulate(const Request& request, const SimulatedPolicies& policies);

// Returns IAM's EvalDecision: "allowed", "explicitDeny", "implicitDeny".
std::string_view decision_name(Verdict verdict);

struct TextSpan {
  TextPosition begin, end;
};
// Returns the position of each statement of a document. Requires: parse_policy() accepts it.
std::vector<TextSpan> statement_spans(std::string_view document);

}  // namespace trainyard::policy
