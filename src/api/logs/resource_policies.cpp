// Implements the operations on resource policies of CloudWatch Logs. On AWS they let other services
// write logs. Here they are stored and described, without effect.
#include "base/json.hpp"
#include "logs/common.hpp"
#include "observe/log_definitions.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;
using observe::DefinitionKind;

constexpr size_t kPoliciesMax = 10;  // of a region, as AWS

aws::ResourcePolicy policy_of(const observe::LogDefinition& stored) {
  return {.policy_name = stored.name,
          .policy_document = stored.body,
          .last_updated_time = to_milliseconds(stored.changed)};
}

Outcome<aws::PutResourcePolicyResponse> put_policy(observe::Logs& logs, const Context& context,
                                                   const aws::PutResourcePolicyRequest& in) {
  if (in.resource_arn || in.expected_revision_id)
    return invalid_parameter(
        "resourceArn and expectedRevisionId are not supported: policies belong to the account.");
  if (!in.policy_name || !in.policy_document || in.policy_name->empty())
    return invalid_parameter("policyName and policyDocument must be specified.");
  if (!parse_json(*in.policy_document))
    return invalid_parameter("Policy document is not valid JSON.");
  const observe::LogDefinition policy{"", *in.policy_name, *in.policy_document, context.now};
  const auto kept =
      logs.definitions().put(context.region, DefinitionKind::resource_policy, policy, kPoliciesMax);
  if (!kept && kept.error().kind == Kind::exhausted) return limit_exceeded(kept.error().message);
  TRY_LOGS(kept);
  return aws::PutResourcePolicyResponse{.resource_policy = policy_of(policy)};
}

Outcome<aws::DescribeResourcePoliciesResponse> describe_policies(
    observe::Logs& logs, const Context& context, const aws::DescribeResourcePoliciesRequest& in) {
  aws::DescribeResourcePoliciesResponse out;
  out.resource_policies.emplace();
  if (in.resource_arn || in.policy_scope.value_or("ACCOUNT") != "ACCOUNT") return out;
  for (const auto& stored :
       TRY_LOGS(logs.definitions().list(context.region, DefinitionKind::resource_policy, "")))
    out.resource_policies->push_back(policy_of(stored));
  out.next_token =
      TRY(cut_page(*out.resource_policies, size_t(in.limit.value_or(kListDefault)), in.next_token,
                   [](const aws::ResourcePolicy& each) { return *each.policy_name; }));
  return out;
}

}  // namespace

void add_resource_policies(OperationTable& table, const Services& services) {
  observe::Logs& logs = services.logs;
  table.add<aws::PutResourcePolicy>(
      [&logs](const Context& context, const auto& in) { return put_policy(logs, context, in); });
  table.add<aws::DescribeResourcePolicies>([&logs](const Context& context, const auto& in) {
    return describe_policies(logs, context, in);
  });
  table.add<aws::DeleteResourcePolicy>(
      [&logs](const Context& context,
              const aws::DeleteResourcePolicyRequest& in) -> Outcome<aws::Nothing> {
        const std::string name = in.policy_name.value_or("");
        const auto removed =
            logs.definitions().remove(context.region, DefinitionKind::resource_policy, "", name);
        if (!removed && removed.error().kind == Kind::not_found)
          return resource_not_found("Policy with name [" + name + "] does not exist");
        TRY_LOGS(removed);
        return aws::Nothing{};
      });
}

}  // namespace trainyard::api::logs
