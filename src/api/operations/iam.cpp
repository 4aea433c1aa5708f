// What clients ask of roles before they use one. The SageMaker SDKs resolve the caller's session to its role, look for
// SageMaker in the role's trust policy, and simulate what the role may do: the answers are what holds here (auth/roles.hpp).
#include "api/shapes/iam.hpp"
#include <algorithm>

#include "api/auth/roles.hpp"
#include "api/operations/operations.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::api {
namespace {

namespace iam = shapes::iam;

// Roles were always there: none has a day on which it was made.
constexpr Instant kCreated{};
constexpr int64_t kSessionSecondsMax = 43200;  // of AssumeRole
constexpr std::string_view kPolicyName = "AdministratorAccess";
constexpr std::string_view kPolicyArn = "arn:aws:iam::aws:policy/AdministratorAccess";
constexpr std::string_view kAllowed = "allowed", kDenied = "implicitDeny";
constexpr std::string_view kAllResources = "*";
// Actions times resources of one simulation: an answer of some megabytes.
constexpr size_t kDecisionsMax = 10'000;

// Percent-encoded JSON, as IAM answers it: services that run jobs, and the account's own principals.
std::string trust_policy(const std::string& account) {
  const Json statement{
      {"Effect", "Allow"},
      {"Principal",
       {{"Service", {"sagemaker.amazonaws.com", "batch.amazonaws.com", "ecs-tasks.amazonaws.com"}},
        {"AWS", "arn:aws:iam::" + account + ":root"}}},
      {"Action", "sts:AssumeRole"}};
  return percent_encode(dump(Json{{"Version", "2012-10-17"}, {"Statement", {statement}}}));
}

iam::Role role(const std::string& account, const std::string& name) {
  iam::Role out;
  out.path = "/";
  out.role_name = name;
  out.role_id = role_id(name);
  out.arn = role_arn(account, name);
  out.create_date = kCreated;
  out.assume_role_policy_document = trust_policy(account);
  out.max_session_duration = kSessionSecondsMax;
  return out;
}

std::string decision(const std::string&, const std::string&) {
  return std::string(true ? kAllowed : kDenied);
}

std::vector<iam::Statement> matched() {
  return {iam::Statement{.source_policy_id = std::string(kPolicyName), .source_policy_type = "aws-managed"}};
}

iam::EvaluationResult evaluate(const std::string& role, const std::string& action,
                               const std::vector<std::string>& resources) {
  iam::EvaluationResult out;
  out.eval_action_name = action;
  out.eval_decision = decision(role, action);
  out.eval_resource_name = resources.size() == 1 ? resources.front() : std::string(kAllResources);
  out.matched_statements = matched();
  out.missing_context_values.emplace();
  for (const auto& resource : resources) {
    if (!out.resource_specific_results) out.resource_specific_results.emplace();
    out.resource_specific_results->push_back({.eval_resource_name = resource,
                                              .eval_resource_decision = out.eval_decision,
                                              .matched_statements = matched()});
  }
  return out;
}

Outcome<iam::SimulatePolicyResponse> simulate(const Context& context,
                                              const iam::SimulatePrincipalPolicyRequest& in) {
  // Policies that are not the role's own: nothing here would be decided by them.
  if ((in.policy_input_list && !in.policy_input_list->empty()) || in.resource_policy ||
      (in.permissions_boundary_policy_input_list && !in.permissions_boundary_policy_input_list->empty()))
    return invalid_input("Policies of the request are not simulated by this server: leave them out");
  const auto role = role_of_arn(*in.policy_source_arn, context.principal.account);
  if (!role && role.error().kind == Kind::not_found)
    return no_such_entity("The role with name " + std::string(role_name(*in.policy_source_arn)) +
                          " cannot be found.");
  if (!role) return invalid_input("Invalid Entity Arn: " + role.error().message);
  const std::vector<std::string> resources = in.resource_arns.value_or(std::vector<std::string>());
  if (in.action_names->size() * std::max<size_t>(resources.size(), 1) > kDecisionsMax)
    return invalid_input("One request may ask for at most " + std::to_string(kDecisionsMax) + " decisions");
  iam::SimulatePolicyResponse out;
  out.evaluation_results.emplace();
  for (const auto& action : *in.action_names)
    out.evaluation_results->push_back(evaluate(*role, action, resources));
  out.is_truncated = false;
  return out;
}

}  // namespace

void add_iam(OperationTable& table, const Settings&, const Services&) {
  table.add_quick<iam::GetRole>(
      [](const Context& context, const iam::GetRoleRequest& in) -> Outcome<iam::GetRoleResponse> {
        return iam::GetRoleResponse{.role = role(context.principal.account, *in.role_name)};
      });
  table.add_quick<iam::ListAttachedRolePolicies>(
      [](const Context&,
         const iam::ListAttachedRolePoliciesRequest&) -> Outcome<iam::ListAttachedRolePoliciesResponse> {
        iam::ListAttachedRolePoliciesResponse out;
        out.attached_policies = {iam::AttachedPolicy{.policy_name = std::string(kPolicyName),
                                                     .policy_arn = std::string(kPolicyArn)}};
        out.is_truncated = false;
        return out;
      });
  table.add_quick<iam::ListRolePolicies>(
      [](const Context&, const iam::ListRolePoliciesRequest&) -> Outcome<iam::ListRolePoliciesResponse> {
        iam::ListRolePoliciesResponse out;
        out.policy_names.emplace();
        out.is_truncated = false;
        return out;
      });
  table.add_quick<iam::SimulatePrincipalPolicy>(simulate);
}

}  // namespace trainyard::api
