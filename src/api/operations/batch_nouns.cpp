// Queues, environments and definitions, as Batch says them.
#include <algorithm>
#include <set>

#include "api/operations/batch.hpp"
#include "api/protocol/json.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::api {
namespace {

namespace batch = shapes::batch;

constexpr int64_t kCpusMax = 1'000'000'000;

template <class Operation>
Outcome<Json> words_of(const typename Operation::Input& request) {
  std::string words;
  write_json(*Operation::shape().input, &request, words);
  return TRY(parse_json(words));
}

Failure not_here(const std::string& member, const std::string& instead) {
  return client_exception(member + " cannot be used with this server: " + instead);
}

// Requires: `environment.request` is whole.
Outcome<domain::ComputeEnvironment> checked(domain::ComputeEnvironment environment) {
  const Json& request = environment.request;
  const bool managed = request.value("type", "") == "MANAGED";
  const auto resources = request.find("computeResources");
  if (managed != (resources != request.end()))
    return client_exception(managed
                                ? "computeResources is required for a MANAGED compute environment"
                                : "computeResources must not be given for an UNMANAGED compute environment");
  environment.enabled = request.value("state", "ENABLED") == "ENABLED";
  environment.cpus_max = 0;
  if (!managed) return environment;
  const int64_t least = resources->value("minvCpus", int64_t{0}),
                most = resources->value("maxvCpus", int64_t{0});
  if (most < 1 || most > kCpusMax)
    return client_exception("computeResources.maxvCpus must be between 1 and " + std::to_string(kCpusMax));
  if (least < 0 || least > most)
    return client_exception("computeResources.minvCpus must be between 0 and maxvCpus");
  environment.cpus_max = double(most);
  return environment;
}

// Requires: `queue.request` is whole.
Outcome<domain::JobQueue> checked(domain::JobQueue queue) {
  const Json& request = queue.request;
  queue.enabled = request.value("state", "ENABLED") == "ENABLED";
  queue.priority = request.value("priority", int64_t{0});
  if (queue.priority < 0) return client_exception("priority must be 0 or more");
  queue.environments.clear();
  std::map<int64_t, std::string> in_order;
  std::set<std::string> names;
  for (const Json& each : request.value("computeEnvironmentOrder", Json::array())) {
    std::string name(domain::name_in_arn(each.value("computeEnvironment", ""), domain::kEnvironmentArn));
    if (!names.insert(name).second)
      return client_exception("computeEnvironmentOrder names " + shorten(name, 128) + " twice");
    if (!in_order.emplace(each.value("order", int64_t{0}), std::move(name)).second)
      return client_exception("computeEnvironmentOrder gives one order twice");
  }
  if (in_order.empty() || in_order.size() > domain::kEnvironmentsOfQueueMax)
    return client_exception("computeEnvironmentOrder must name one to " +
                            std::to_string(domain::kEnvironmentsOfQueueMax) + " compute environments");
  for (auto& [order, name] : in_order) queue.environments.push_back(std::move(name));
  return queue;
}

Outcome<Done> check_retries(const batch::RetryStrategy& strategy) {
  const auto attempts = strategy.attempts;
  if (attempts && (*attempts < 1 || *attempts > domain::kBatchAttemptsMax))
    return client_exception("retryStrategy.attempts must be between 1 and " +
                            std::to_string(domain::kBatchAttemptsMax));
  if (!strategy.evaluate_on_exit || strategy.evaluate_on_exit->empty()) return Done{};
  if (!attempts) return client_exception("retryStrategy.evaluateOnExit needs retryStrategy.attempts");
  if (strategy.evaluate_on_exit->size() > domain::kRetryRulesMax)
    return client_exception("retryStrategy.evaluateOnExit has at most " +
                            std::to_string(domain::kRetryRulesMax) + " rules");
  for (const auto& rule : *strategy.evaluate_on_exit)
    for (const auto& pattern : {rule.on_status_reason, rule.on_reason, rule.on_exit_code})
      if (const size_t star = pattern.value_or("").find('*');
          star != std::string::npos && star + 1 != pattern->size())
        return client_exception("retryStrategy.evaluateOnExit: '" + shorten(*pattern, 60) +
                                "' may have a * only at its end");
  return Done{};
}

Outcome<Done> check_container(const batch::ContainerProperties& container) {
  if (container.image.value_or("").empty()) return client_exception("containerProperties.image is required");
  std::set<std::string> resources;
  for (const auto& each : container.resource_requirements.value_or(std::vector<batch::ResourceRequirement>()))
    resources.insert(each.type.value_or(""));
  if (!container.vcpus && !resources.contains("VCPU"))
    return client_exception("containerProperties needs vCPUs: a resource requirement of type VCPU");
  if (!container.memory && !resources.contains("MEMORY"))
    return client_exception("containerProperties needs memory: a resource requirement of type MEMORY");
  for (const auto& each : container.environment.value_or(std::vector<batch::KeyValuePair>()))
    if (each.name.value_or("").starts_with(domain::kReservedVariables))
      return client_exception("Environment variable names must not begin with AWS_BATCH_: " +
                              shorten(*each.name, 128));
  return Done{};
}

template <class Detail>
Result<Detail> read_detail(const shapes::Shape& shape, const Json& words) {
  Detail detail;
  TRY(read_json(shape, dump(words), &detail));
  return detail;
}

// The shape of what a list of a reply holds.
const shapes::Shape& element_of(const shapes::OperationShape& operation, std::string_view member) {
  const auto& members = operation.output->members;
  return *std::ranges::find(members, member, &shapes::Member::name)->shape->element;
}

}  // namespace

Outcome<Done> check_batch_name(const std::string& name, std::string_view member) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const bool good = !name.empty() && name.size() <= 128 && letter(name[0]) &&
                    std::ranges::all_of(name, [&](char c) { return letter(c) || c == '-' || c == '_'; });
  if (good) return Done{};
  return client_exception(
      std::string(member) + " '" + shorten(name, 128) +
      "' must be 1 to 128 letters, numbers, hyphens and underscores, and begin with a letter "
      "or number");
}

Outcome<domain::ComputeEnvironment> environment_of(const batch::CreateComputeEnvironmentRequest& request,
                                                   const std::string& region) {
  TRY(check_batch_name(*request.compute_environment_name, "computeEnvironmentName"));
  if (request.eks_configuration)
    return not_here("eksConfiguration", "its hosts are this server's machines; leave it out");
  domain::ComputeEnvironment environment;
  environment.key = {region, *request.compute_environment_name};
  environment.request = TRY(words_of<batch::CreateComputeEnvironment>(request));
  environment.request.erase("tags");
  return checked(std::move(environment));
}

Outcome<domain::ComputeEnvironment> environment_of(const batch::UpdateComputeEnvironmentRequest& request,
                                                   domain::ComputeEnvironment present) {
  Json changes = TRY(words_of<batch::UpdateComputeEnvironment>(request));
  changes.erase("computeEnvironment");
  present.request.merge_patch(changes);
  return checked(std::move(present));
}

Outcome<domain::JobQueue> queue_of(const batch::CreateJobQueueRequest& request, const std::string& region) {
  TRY(check_batch_name(*request.job_queue_name, "jobQueueName"));
  if (request.scheduling_policy_arn)
    return not_here("schedulingPolicyArn",
                    "its queues are in order of priority and submission; leave it out");
  if (request.service_environment_order || request.job_queue_type.value_or("ECS") == "SAGEMAKER_TRAINING")
    return not_here("serviceEnvironmentOrder", "training jobs are created by CreateTrainingJob");
  if (request.job_state_time_limit_actions && !request.job_state_time_limit_actions->empty())
    return not_here("jobStateTimeLimitActions", "leave it out");
  domain::JobQueue queue;
  queue.key = {region, *request.job_queue_name};
  queue.request = TRY(words_of<batch::CreateJobQueue>(request));
  queue.request.erase("tags");
  return checked(std::move(queue));
}

Outcome<domain::JobQueue> queue_of(const batch::UpdateJobQueueRequest& request, domain::JobQueue present) {
  if (request.scheduling_policy_arn)
    return not_here("schedulingPolicyArn",
                    "its queues are in order of priority and submission; leave it out");
  if (request.service_environment_order)
    return not_here("serviceEnvironmentOrder", "training jobs are created by CreateTrainingJob");
  if (request.job_state_time_limit_actions && !request.job_state_time_limit_actions->empty())
    return not_here("jobStateTimeLimitActions", "leave it out");
  Json changes = TRY(words_of<batch::UpdateJobQueue>(request));
  changes.erase("jobQueue");
  present.request.merge_patch(changes);
  return checked(std::move(present));
}

Outcome<domain::JobDefinition> definition_of(const batch::RegisterJobDefinitionRequest& request,
                                             const std::string& region) {
  TRY(check_batch_name(*request.job_definition_name, "jobDefinitionName"));
  if (*request.type == "multinode" && !request.node_properties)
    return client_exception("nodeProperties is required for a job definition of type multinode");
  if (*request.type == "container" && !request.container_properties && !request.ecs_properties &&
      !request.eks_properties)
    return client_exception("containerProperties is required for a job definition of type container");
  if (request.container_properties) TRY(check_container(*request.container_properties));
  if (request.retry_strategy) TRY(check_retries(*request.retry_strategy));
  if (request.timeout &&
      request.timeout->attempt_duration_seconds.value_or(0) < domain::kBatchAttemptSecondsMin)
    return client_exception("timeout.attemptDurationSeconds must be at least " +
                            std::to_string(domain::kBatchAttemptSecondsMin));
  domain::JobDefinition definition;
  definition.key = {region, *request.job_definition_name};
  definition.request = TRY(words_of<batch::RegisterJobDefinition>(request));
  definition.request.erase("tags");
  if (dump(definition.request).size() > kDefinitionBytesMax)
    return client_exception("a job definition has at most " + std::to_string(kDefinitionBytesMax) + " bytes");
  return definition;
}

Result<batch::ComputeEnvironmentDetail> describe(const domain::ComputeEnvironment& environment,
                                                 const std::string& account) {
  auto detail = TRY(read_detail<batch::ComputeEnvironmentDetail>(
      element_of(batch::DescribeComputeEnvironments::shape(), "computeEnvironments"), environment.request));
  const auto& [region, name] = environment.key;
  detail.compute_environment_arn = domain::batch_arn(account, region, domain::kEnvironmentArn, name);
  detail.ecs_cluster_arn = "arn:aws:ecs:" + region + ":" + account + ":cluster/" + name;
  detail.state = environment.enabled ? "ENABLED" : "DISABLED";
  detail.status = "VALID";
  detail.status_reason = "ComputeEnvironment Healthy";
  detail.container_orchestration_type = "ECS";
  return detail;
}

Result<batch::JobQueueDetail> describe(const domain::JobQueue& queue, const std::string& account) {
  auto detail = TRY(read_detail<batch::JobQueueDetail>(
      element_of(batch::DescribeJobQueues::shape(), "jobQueues"), queue.request));
  const std::string& region = queue.key.region;
  detail.job_queue_arn = domain::batch_arn(account, region, domain::kQueueArn, queue.key.name);
  detail.state = queue.enabled ? "ENABLED" : "DISABLED";
  detail.status = "VALID";
  detail.status_reason = "JobQueue Healthy";
  for (auto& each : *detail.compute_environment_order)
    each.compute_environment = domain::batch_arn(
        account, region, domain::kEnvironmentArn,
        std::string(domain::name_in_arn(*each.compute_environment, domain::kEnvironmentArn)));
  return detail;
}

Result<batch::JobDefinition> describe(const domain::JobDefinition& definition, const std::string& account) {
  auto detail = TRY(read_detail<batch::JobDefinition>(
      element_of(batch::DescribeJobDefinitions::shape(), "jobDefinitions"), definition.request));
  detail.job_definition_arn =
      domain::batch_arn(account, definition.key.region, domain::kDefinitionArn,
                        definition.key.name + ":" + std::to_string(definition.revision));
  detail.revision = definition.revision;
  detail.status = definition.active ? "ACTIVE" : "INACTIVE";
  detail.container_orchestration_type = detail.eks_properties ? "EKS" : "ECS";
  return detail;
}

}  // namespace trainyard::api
