// Simulates policies with the function that authorises requests (policy/evaluate.hpp).
//
// An undefined role is simulated with the rights that any job could need: objects, logs, metrics
// and SageMaker's actions on all resources, and the actions of EC2, KMS and ECR that SageMaker's
// SDKs simulate. A job's keys have only the rights that the job needs (SECURITY.md), but the SDKs
// simulate before the job exists.
#include <set>

#include "auth/roles.hpp"
#include "base/text.hpp"
#include "iam/common.hpp"
#include "operations/job_role.hpp"
#include "policy/managed.hpp"
#include "policy/simulate.hpp"

namespace trainyard::api::iam {
namespace {

// The maximum of actions times resources in one simulation. Its response has some MiB.
constexpr size_t kDecisionsMax = 10'000;
constexpr std::string_view kUndefinedRolePolicy =
    R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":[
"s3:GetObject","s3:PutObject","s3:DeleteObject","s3:AbortMultipartUpload","s3:ListBucket","s3:GetBucketLocation",
"s3:ListMultipartUploadParts","s3:ListBucketMultipartUploads","logs:CreateLogGroup","logs:CreateLogStream",
"logs:PutLogEvents","logs:DescribeLogStreams","logs:GetLogEvents","cloudwatch:PutMetricData","sagemaker:*",
"ec2:CreateNetworkInterface","ec2:CreateNetworkInterfacePermission","ec2:DeleteNetworkInterface",
"ec2:DeleteNetworkInterfacePermission","ec2:DescribeDhcpOptions","ec2:DescribeNetworkInterfaces",
"ec2:DescribeSecurityGroups","ec2:DescribeSubnets","ec2:DescribeVpcs","kms:Decrypt","kms:Encrypt","kms:GenerateDataKey",
"ecr:GetAuthorizationToken","ecr:BatchGetImage","ecr:GetDownloadUrlForLayer","ecr:BatchCheckLayerAvailability"],
"Resource":"*"}]})";

using Parsed = std::shared_ptr<const policy::Policy>;

// The input of one simulation, with the parsed documents of the request.
struct Simulated {
  std::vector<Parsed> parsed;
  std::shared_ptr<const Identities> identities;
  policy::SimulatedPolicies policies;
  policy::Request request;
};

Result<void> add_documents(Simulated& to, const std::vector<std::string>& documents,
                           policy::PolicyKind kind, const std::string& id,
                           std::vector<policy::NamedPolicy>& list,
                           const std::string& type = "none") {
  for (size_t i = 0; i < documents.size(); ++i) {
    to.parsed.push_back(TRY(policy::parse_policy(documents[i], kind)));
    list.push_back({documents.size() == 1 && kind == policy::PolicyKind::resource
                        ? id
                        : id + "." + std::to_string(i + 1),
                    type, to.parsed.back().get()});
  }
  return {};
}

void add_entity(Simulated& to, EntityKind kind, const policy::Entity& entity) {
  for (const auto& [name, document] : entity.inline_policies)
    to.policies.identity.push_back({name, std::string(to_string(kind)), document.policy.get()});
  for (const std::string& arn : entity.attached)
    if (const auto* managed = to.identities->find_policy(arn))
      to.policies.identity.push_back({managed->name,
                                      managed->aws_managed ? "aws-managed" : "user-managed",
                                      managed->default_document()->document.policy.get()});
    else
      to.policies.identity.push_back({arn, "none", policy::deny_everything().get()});
}

void add_user(Simulated& to, const policy::User& user) {
  add_entity(to, EntityKind::user, user);
  for (const std::string& name : user.groups)
    if (const auto* group = to.identities->find_group(name))
      add_entity(to, EntityKind::group, *group);
  to.request.principal_arn = to.identities->arn_of(user);
}

Result<void> add_role(Simulated& to, std::string_view arn) {
  const std::string name = TRY(role_of_arn(arn, to.identities->account()));
  const policy::Role* role = to.identities->find_role(name);
  to.request.role_arn = role ? to.identities->arn_of(*role) : std::string(arn);
  to.request.principal_arn = to.request.role_arn;
  if (role) {
    add_entity(to, EntityKind::role, *role);
    return {};
  }
  if (name == kOwnerRole) {
    constexpr std::string_view kEverything = "arn:aws:iam::aws:policy/AdministratorAccess";
    const auto* managed = to.identities->find_policy(kEverything);
    to.policies.identity.push_back(
        {managed->name, "aws-managed", managed->default_document()->document.policy.get()});
    return {};
  }
  static const Parsed undefined =
      policy::parse_policy(kUndefinedRolePolicy, policy::PolicyKind::identity).value();
  to.policies.identity.push_back({"UndefinedRole", "role", undefined.get()});
  return {};
}

// Adds the policies of the user, group or role with this ARN. Errors: NoSuchEntity, InvalidInput.
Outcome<Done> add_source(Simulated& to, const std::string& arn) {
  const auto parts = split(arn, ':');
  if (parts.size() != 6 || parts[0] != "arn" || parts[2] != "iam")
    return invalid_input("Invalid Entity Arn: " + shorten(arn, 200));
  const std::string_view resource = parts[5];
  const std::string name(resource.substr(resource.rfind('/') + 1));
  const std::string& account = to.identities->account();
  const bool role = resource.starts_with("role/");
  if (parts[4] != account && !role)
    return no_such_entity("The entity " + shorten(arn, 200) +
                          " cannot be found. The account of this server is " + account + ".");
  const policy::Entity* entity = nullptr;
  if (resource.starts_with("user/")) {
    const policy::User* user = TRY(policy::user_of(*to.identities, name));
    add_user(to, *user);
    entity = user;
  } else if (resource.starts_with("group/")) {
    const policy::Group* group = TRY(policy::group_of(*to.identities, name));
    add_entity(to, EntityKind::group, *group);
    entity = group;
  } else if (role) {
    if (const auto added = add_role(to, own_role(arn, account)); !added)
      return invalid_input("Invalid Entity Arn: " + added.error().message);
    entity = to.identities->find_role(name);
  } else {
    return invalid_input("Invalid Entity Arn: " + shorten(arn, 200));
  }
  if (entity && !entity->boundary.empty())
    to.policies.boundary.push_back(
        {entity->boundary, "user-managed", to.identities->boundary_of(*entity)});
  return Done{};
}

template <class In>
Outcome<Done> add_context(Simulated& to, const In& in) {
  const auto bad = [](const Error& error) { return invalid_input(error.message); };
  if (in.resource_policy)
    if (const auto added = add_documents(to, {*in.resource_policy}, policy::PolicyKind::resource,
                                         "ResourcePolicy", to.policies.resource, "resource");
        !added)
      return bad(added.error());
  if (in.permissions_boundary_policy_input_list &&
      !in.permissions_boundary_policy_input_list->empty()) {
    if (in.permissions_boundary_policy_input_list->size() > 1)
      return invalid_input("PermissionsBoundaryPolicyInputList has at most one policy");
    to.policies.boundary.clear();
    if (const auto added = add_documents(
            to, *in.permissions_boundary_policy_input_list, policy::PolicyKind::identity,
            "PermissionsBoundaryPolicyInputList", to.policies.boundary);
        !added)
      return bad(added.error());
  }
  to.request.account = to.identities->account();
  if (in.caller_arn) to.request.principal_arn = *in.caller_arn;
  if (in.context_entries)
    for (const auto& entry : *in.context_entries)
      if (entry.context_key_name)
        to.request.values.set(*entry.context_key_name,
                              entry.context_key_values.value_or(std::vector<std::string>()));
  return Done{};
}

std::vector<iam::Statement> to_shape(const std::vector<policy::MatchedStatement>& matched) {
  std::vector<iam::Statement> out;
  for (const auto& each : matched) {
    iam::Statement statement{.source_policy_id = each.policy_id,
                             .source_policy_type = each.policy_type};
    statement.start_position =
        iam::Position{.line = int64_t(each.begin.line), .column = int64_t(each.begin.column)};
    statement.end_position =
        iam::Position{.line = int64_t(each.end.line), .column = int64_t(each.end.column)};
    out.push_back(std::move(statement));
  }
  return out;
}

iam::ResourceSpecificResult decide(Simulated& simulated, const std::string& action,
                                   const std::string& resource) {
  simulated.request.action = action;
  simulated.request.resource = resource;
  const policy::Simulation done = policy::simulate(simulated.request, simulated.policies);
  iam::ResourceSpecificResult out;
  out.eval_resource_name = resource;
  out.eval_resource_decision = std::string(policy::decision_name(done.decision.verdict));
  out.matched_statements = to_shape(done.matched);
  out.missing_context_values = done.missing_keys;
  if (done.allowed_by_boundary)
    out.permissions_boundary_decision_detail = iam::PermissionsBoundaryDecisionDetail{
        .allowed_by_permissions_boundary = *done.allowed_by_boundary};
  return out;
}

// Evaluates an action on each resource. The action's result is the strictest one.
iam::EvaluationResult evaluate(Simulated& simulated, const std::string& action,
                               const std::vector<std::string>& resources) {
  std::vector<iam::ResourceSpecificResult> each;
  for (const auto& resource : resources) each.push_back(decide(simulated, action, resource));
  if (each.empty()) each.push_back(decide(simulated, action, "*"));
  const auto strictness = [](const iam::ResourceSpecificResult& result) {
    return *result.eval_resource_decision == "explicitDeny"   ? 2
           : *result.eval_resource_decision == "implicitDeny" ? 1
                                                              : 0;
  };
  const auto& strictest = *std::ranges::max_element(each, {}, strictness);
  iam::EvaluationResult out;
  out.eval_action_name = action;
  out.eval_resource_name = resources.size() == 1 ? resources.front() : "*";
  out.eval_decision = *strictest.eval_resource_decision;
  out.matched_statements = strictest.matched_statements;
  out.missing_context_values = strictest.missing_context_values;
  out.permissions_boundary_decision_detail = strictest.permissions_boundary_decision_detail;
  if (!resources.empty()) out.resource_specific_results = std::move(each);
  return out;
}

template <class In>
Outcome<iam::SimulatePolicyResponse> answer(Simulated& simulated, const In& in) {
  const std::vector<std::string> resources = in.resource_arns.value_or(std::vector<std::string>());
  if (in.action_names->size() * std::max<size_t>(resources.size(), 1) > kDecisionsMax)
    return invalid_input("One request may have at most " + std::to_string(kDecisionsMax) +
                         " decisions");
  iam::SimulatePolicyResponse out;
  out.evaluation_results.emplace();
  for (const auto& action : *in.action_names)
    out.evaluation_results->push_back(evaluate(simulated, action, resources));
  out.is_truncated = false;
  return out;
}

Outcome<iam::SimulatePolicyResponse> simulate_principal(
    const Services& services, const iam::SimulatePrincipalPolicyRequest& in) {
  Simulated simulated;
  simulated.identities = services.identities->snapshot();
  if (auto added = add_source(simulated, *in.policy_source_arn); !added) {
    auto why = std::move(added).error();
    if (const Error* error = std::get_if<Error>(&why)) return iam_failure(*error);
    return std::get<Failure>(std::move(why));
  }
  if (in.policy_input_list)
    if (const auto added =
            add_documents(simulated, *in.policy_input_list, policy::PolicyKind::identity,
                          "PolicyInputList", simulated.policies.identity);
        !added)
      return invalid_input(added.error().message);
  TRY(add_context(simulated, in));
  return answer(simulated, in);
}

Outcome<iam::SimulatePolicyResponse> simulate_custom(const Services& services,
                                                     const iam::SimulateCustomPolicyRequest& in) {
  Simulated simulated;
  simulated.identities = services.identities->snapshot();
  if (const auto added =
          add_documents(simulated, *in.policy_input_list, policy::PolicyKind::identity,
                        "PolicyInputList", simulated.policies.identity);
      !added)
    return invalid_input(added.error().message);
  TRY(add_context(simulated, in));
  return answer(simulated, in);
}

}  // namespace

void add_simulation(OperationTable& table, const Services& services) {
  table.add<iam::SimulatePrincipalPolicy>(
      [&services](const Context&, const iam::SimulatePrincipalPolicyRequest& in) {
        return simulate_principal(services, in);
      });
  table.add<iam::SimulateCustomPolicy>(
      [&services](const Context&, const iam::SimulateCustomPolicyRequest& in) {
        return simulate_custom(services, in);
      });
}

}  // namespace trainyard::api::iam
