// Converts queues, environments and definitions: requests to resources, and resources to
// descriptions.
#include <algorithm>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch/limits.hpp"
#include "batch_api/container.hpp"
#include "batch_api/empty_lists.hpp"
#include "batch_api/instance_types.hpp"
#include "batch_api/nodes.hpp"
#include "batch_api/requests.hpp"
#include "domain/instance_type.hpp"
#include "domain/limits.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;

constexpr int64_t kCpusMax = 1'000'000'000;

Failure unsupported_member(const std::string& member, const std::string& instead) {
  return client_exception(member + " cannot be used with this server: " + instead);
}

// Requires: `environment.request` is complete.
Outcome<catalog::ComputeEnvironment> checked(catalog::ComputeEnvironment environment) {
  const Json& request = environment.request;
  const bool managed = request.value("type", "") == "MANAGED";
  const auto resources = request.find("computeResources");
  if (managed != (resources != request.end()))
    return client_exception(
        managed ? "computeResources is required for a MANAGED compute environment"
                : "computeResources must not be given for an UNMANAGED compute environment");
  environment.enabled = request.value("state", "ENABLED") == "ENABLED";
  environment.cpus_max = environment.cpus_min = environment.cpus_desired = 0;
  environment.instance_types.clear();
  environment.spot = false;
  if (!managed) return environment;
  const int64_t least = resources->value("minvCpus", int64_t{0}),
                most = resources->value("maxvCpus", int64_t{0});
  if (most < 1 || most > kCpusMax)
    return client_exception("computeResources.maxvCpus must be between 1 and " +
                            std::to_string(kCpusMax));
  if (least < 0 || least > most)
    return client_exception("computeResources.minvCpus must be between 0 and maxvCpus");
  const int64_t desired = resources->value("desiredvCpus", int64_t{0});
  if (desired != 0 && (desired < least || desired > most))
    return client_exception("computeResources.desiredvCpus must be between minvCpus and maxvCpus");
  environment.cpus_max = double(most);
  environment.spot = resources->value("type", "").ends_with("SPOT");  // and FARGATE_SPOT
  environment.cpus_min = double(least);
  environment.cpus_desired = double(desired);
  for (const Json& type : resources->value("instanceTypes", Json::array()))
    environment.instance_types.push_back(type.get<std::string>());
  return environment;
}

// Reads the environments of a queue in their order. `member`: computeEnvironmentOrder or
// serviceEnvironmentOrder. `name_member`: the member of its elements with the environment.
Outcome<std::vector<std::string>> read_order(const Json& request, const std::string& member,
                                             const std::string& name_member,
                                             std::string_view kind) {
  std::map<int64_t, std::string> in_order;
  std::set<std::string> names;
  for (const Json& each : request.value(member, Json::array())) {
    std::string name(catalog::name_in_arn(each.value(name_member, ""), kind));
    if (!names.insert(name).second)
      return client_exception(member + " names " + shorten(name, 128) + " twice");
    if (!in_order.emplace(each.value("order", int64_t{0}), std::move(name)).second)
      return client_exception(member + " has two elements with the same order");
  }
  if (in_order.empty() || in_order.size() > catalog::kEnvironmentsOfQueueMax)
    return client_exception(member + " must name one to " +
                            std::to_string(catalog::kEnvironmentsOfQueueMax) + " environments");
  std::vector<std::string> out;
  for (auto& [order, name] : in_order) out.push_back(std::move(name));
  return out;
}

// As on AWS, jobs can only be cancelled by such an action, and service jobs only be terminated.
Outcome<std::vector<catalog::WaitLimit>> read_wait_limits(const Json& actions, bool service) {
  std::vector<catalog::WaitLimit> limits;
  for (const Json& each : actions) {
    catalog::WaitLimit limit;
    limit.seconds_max = each.value("maxTimeSeconds", int64_t{0});
    limit.terminate = each.value("action", "") == "TERMINATE";
    limit.reason = each.value("reason", "");
    if (limit.seconds_max < catalog::kWaitLimitSecondsMin ||
        limit.seconds_max > catalog::kWaitLimitSecondsMax)
      return client_exception("jobStateTimeLimitActions.maxTimeSeconds must be between " +
                              std::to_string(catalog::kWaitLimitSecondsMin) + " and " +
                              std::to_string(catalog::kWaitLimitSecondsMax));
    if (limit.terminate != service)
      return client_exception(
          service ? "jobStateTimeLimitActions.action must be TERMINATE in a job queue of "
                    "the type SAGEMAKER_TRAINING"
                  : "jobStateTimeLimitActions.action must be CANCEL in this job queue");
    limits.push_back(std::move(limit));
  }
  if (limits.size() > catalog::kWaitLimitsMax)
    return client_exception("jobStateTimeLimitActions has at most " +
                            std::to_string(catalog::kWaitLimitsMax) + " actions");
  return limits;
}

// Requires: `queue.request` is complete.
Outcome<catalog::JobQueue> checked(catalog::JobQueue queue) {
  const Json& request = queue.request;
  queue.enabled = request.value("state", "ENABLED") == "ENABLED";
  queue.priority = request.value("priority", int64_t{0});
  if (queue.priority < 0 || queue.priority > INT32_MAX)
    return client_exception("priority must be between 0 and " + std::to_string(INT32_MAX));
  queue.service = request.value("jobQueueType", "") == "SAGEMAKER_TRAINING";
  if (request.contains(queue.service ? "computeEnvironmentOrder" : "serviceEnvironmentOrder"))
    return client_exception(
        queue.service
            ? "A job queue of the type SAGEMAKER_TRAINING has a serviceEnvironmentOrder, "
              "and no computeEnvironmentOrder"
            : "A serviceEnvironmentOrder is for job queues of the type SAGEMAKER_TRAINING");
  queue.environments = queue.service
                           ? TRY(read_order(request, "serviceEnvironmentOrder",
                                            "serviceEnvironment", catalog::kServiceEnvironmentArn))
                           : TRY(read_order(request, "computeEnvironmentOrder",
                                            "computeEnvironment", catalog::kEnvironmentArn));
  queue.policy =
      catalog::name_in_arn(request.value("schedulingPolicyArn", ""), catalog::kPolicyArn);
  queue.wait_limits = TRY(
      read_wait_limits(request.value("jobStateTimeLimitActions", Json::array()), queue.service));
  return queue;
}

template <class Detail>
Result<Detail> read_detail(const shapes::Shape& shape, const Json& json) {
  Detail detail;
  TRY(read_json_into(shape, json, &detail));
  return detail;
}

}  // namespace

Outcome<Done> check_batch_name(const std::string& name, std::string_view member) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const bool good =
      !name.empty() && name.size() <= 128 && letter(name[0]) &&
      std::ranges::all_of(name, [&](char c) { return letter(c) || c == '-' || c == '_'; });
  if (good) return Done{};
  return client_exception(
      std::string(member) + " '" + shorten(name, 128) +
      "' must be 1 to 128 letters, numbers, hyphens and underscores, and begin with a letter "
      "or number");
}

Outcome<Done> check_share_identifier(std::string text, std::string_view member,
                                     bool may_be_prefix) {
  const std::string whole = text;
  if (may_be_prefix && text.ends_with('*')) text.pop_back();
  const bool good =
      !text.empty() && text.size() <= catalog::kShareNameMax &&
      std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      });
  if (good) return Done{};
  return client_exception(std::string(member) + " '" + shorten(whole, 128) + "' must be 1 to " +
                          std::to_string(catalog::kShareNameMax) + " letters and numbers" +
                          (may_be_prefix ? ", and may end with a *" : ""));
}

Outcome<Done> read_retries(const batch::RetryStrategy& strategy, domain::RetryOptions& retry) {
  const auto attempts = strategy.attempts;
  if (attempts && (*attempts < 1 || *attempts > domain::kQueuedAttemptsMax))
    return client_exception("retryStrategy.attempts must be between 1 and " +
                            std::to_string(domain::kQueuedAttemptsMax));
  retry.attempts_max = uint32_t(attempts.value_or(1));
  if (!strategy.evaluate_on_exit || strategy.evaluate_on_exit->empty()) return Done{};
  if (!attempts)
    return client_exception("retryStrategy.evaluateOnExit needs retryStrategy.attempts next to it");
  if (strategy.evaluate_on_exit->size() > catalog::kRetryRulesMax)
    return client_exception("retryStrategy.evaluateOnExit has at most " +
                            std::to_string(catalog::kRetryRulesMax) + " rules");
  for (const auto& rule : *strategy.evaluate_on_exit) {
    for (const auto& pattern : {rule.on_status_reason, rule.on_reason, rule.on_exit_code})
      if (const size_t star = pattern.value_or("").find('*');
          star != std::string::npos && star + 1 != pattern->size())
        return client_exception("retryStrategy.evaluateOnExit: '" + shorten(*pattern, 60) +
                                "' may have a * only at its end");
    const std::string action = to_lower(*rule.action);
    if (action != "retry" && action != "exit")
      return client_exception("retryStrategy.evaluateOnExit.action must be RETRY or EXIT, not '" +
                              shorten(*rule.action, 40) + "'");
    retry.rules.push_back({rule.on_status_reason.value_or(""), rule.on_reason.value_or(""),
                           rule.on_exit_code.value_or(""), action == "retry"});
  }
  return Done{};
}

Outcome<std::vector<catalog::CapacityLimit>> capacity_limits_of(const Json& json) {
  std::vector<catalog::CapacityLimit> limits;
  for (const Json& each : json) {
    catalog::CapacityLimit limit{each.value("capacityUnit", ""),
                                 each.value("maxCapacity", int64_t{-1})};
    if (limit.unit != catalog::kInstancesUnit && !domain::find_instance_type(limit.unit))
      return client_exception("capacityLimits.capacityUnit '" + shorten(limit.unit, 60) +
                              "' must be NUM_INSTANCES or an instance type that this server knows");
    if (limit.capacity < 0 || limit.capacity > domain::kCountedMax)
      return client_exception("capacityLimits.maxCapacity must be between 0 and " +
                              std::to_string(domain::kCountedMax));
    if (std::ranges::find(limits, limit.unit, &catalog::CapacityLimit::unit) != limits.end())
      return client_exception("capacityLimits names " + limit.unit + " twice");
    limits.push_back(std::move(limit));
  }
  if (limits.empty()) return client_exception("capacityLimits must have at least one limit");
  return limits;
}

Outcome<catalog::ComputeEnvironment> environment_of(
    const batch::CreateComputeEnvironmentRequest& request, const std::string& region) {
  TRY(check_batch_name(*request.compute_environment_name, "computeEnvironmentName"));
  if (request.eks_configuration)
    return unsupported_member("eksConfiguration",
                              "its hosts are this server's machines; leave it out");
  catalog::ComputeEnvironment environment;
  environment.key = {region, *request.compute_environment_name};
  environment.request = TRY(json_of<batch::CreateComputeEnvironment>(request));
  environment.request.erase("tags");
  TRY(check_instance_types(environment.request.value("computeResources", Json::object())));
  return checked(std::move(environment));
}

Outcome<catalog::ComputeEnvironment> environment_of(
    const batch::UpdateComputeEnvironmentRequest& request, catalog::ComputeEnvironment present) {
  Json changes = TRY(json_of<batch::UpdateComputeEnvironment>(request));
  changes.erase("computeEnvironment");
  TRY(check_instance_types(changes.value("computeResources", Json::object())));
  present.request.merge_patch(changes);
  return checked(std::move(present));
}

Outcome<catalog::JobQueue> queue_of(const batch::CreateJobQueueRequest& request,
                                    const std::string& region) {
  TRY(check_batch_name(*request.job_queue_name, "jobQueueName"));
  catalog::JobQueue queue;
  queue.key = {region, *request.job_queue_name};
  queue.request = TRY(json_of<batch::CreateJobQueue>(request));
  queue.request.erase("tags");
  return checked(std::move(queue));
}

Outcome<catalog::JobQueue> queue_of(const batch::UpdateJobQueueRequest& request,
                                    catalog::JobQueue present) {
  Json changes = TRY(json_of<batch::UpdateJobQueue>(request));
  changes.erase("jobQueue");
  present.request.merge_patch(changes);
  return checked(std::move(present));
}

Outcome<catalog::JobDefinition> definition_of(const batch::RegisterJobDefinitionRequest& request,
                                              const std::string& region) {
  TRY(check_batch_name(*request.job_definition_name, "jobDefinitionName"));
  if (*request.type == "multinode" && !request.node_properties)
    return client_exception("nodeProperties is required for a job definition of type multinode");
  if (*request.type == "container" && !request.container_properties && !request.ecs_properties &&
      !request.eks_properties)
    return client_exception(
        "containerProperties is required for a job definition of type container");
  if (request.container_properties)
    TRY(check_container(*request.container_properties, "containerProperties"));
  if (*request.type == "multinode") TRY(check_nodes(*request.node_properties));
  domain::RetryOptions unused;
  if (request.retry_strategy) TRY(read_retries(*request.retry_strategy, unused));
  if (request.timeout &&
      request.timeout->attempt_duration_seconds.value_or(0) < catalog::kAttemptSecondsMin)
    return client_exception("timeout.attemptDurationSeconds must be at least " +
                            std::to_string(catalog::kAttemptSecondsMin));
  catalog::JobDefinition definition;
  definition.key = {region, *request.job_definition_name};
  definition.request = TRY(json_of<batch::RegisterJobDefinition>(request));
  definition.request.erase("tags");
  if (dump(definition.request).size() > kDefinitionBytesMax)
    return client_exception("a job definition has at most " + std::to_string(kDefinitionBytesMax) +
                            " bytes");
  return definition;
}

Result<batch::ComputeEnvironmentDetail> describe(const catalog::ComputeEnvironment& environment,
                                                 const std::string& account) {
  auto detail = TRY(read_detail<batch::ComputeEnvironmentDetail>(
      element_of(batch::DescribeComputeEnvironments::shape(), "computeEnvironments"),
      environment.request));
  const auto& [region, name] = environment.key;
  detail.compute_environment_arn = catalog::arn_of(account, region, catalog::kEnvironmentArn, name);
  detail.ecs_cluster_arn = "arn:aws:ecs:" + region + ":" + account + ":cluster/" + name;
  detail.state = environment.enabled ? "ENABLED" : "DISABLED";
  detail.status = "VALID";
  detail.status_reason = "ComputeEnvironment Healthy";
  detail.container_orchestration_type = "ECS";
  return detail;
}

Result<batch::JobQueueDetail> describe(const catalog::JobQueue& queue, const std::string& account) {
  auto detail = TRY(read_detail<batch::JobQueueDetail>(
      element_of(batch::DescribeJobQueues::shape(), "jobQueues"), queue.request));
  const std::string& region = queue.key.region;
  detail.job_queue_arn = catalog::arn_of(account, region, catalog::kQueueArn, queue.key.name);
  detail.state = queue.enabled ? "ENABLED" : "DISABLED";
  detail.status = "VALID";
  detail.status_reason = "JobQueue Healthy";
  const auto full = [&](std::string& name, std::string_view kind) {
    name = catalog::arn_of(account, region, kind, std::string(catalog::name_in_arn(name, kind)));
  };
  if (!detail.compute_environment_order)
    detail.compute_environment_order.emplace();  // required, also when empty
  for (auto& each : *detail.compute_environment_order)
    full(*each.compute_environment, catalog::kEnvironmentArn);
  if (detail.service_environment_order)
    for (auto& each : *detail.service_environment_order)
      full(*each.service_environment, catalog::kServiceEnvironmentArn);
  if (detail.scheduling_policy_arn) full(*detail.scheduling_policy_arn, catalog::kPolicyArn);
  if (!detail.job_queue_type) detail.job_queue_type = "ECS";
  return detail;
}

Result<batch::JobDefinition> describe(const catalog::JobDefinition& definition,
                                      const std::string& account) {
  auto detail = TRY(read_detail<batch::JobDefinition>(
      element_of(batch::DescribeJobDefinitions::shape(), "jobDefinitions"), definition.request));
  detail.job_definition_arn =
      catalog::arn_of(account, definition.key.region, catalog::kDefinitionArn,
                      definition.key.name + ":" + std::to_string(definition.revision));
  detail.revision = definition.revision;
  detail.status = definition.active ? "ACTIVE" : "INACTIVE";
  detail.container_orchestration_type = detail.eks_properties ? "EKS" : "ECS";
  if (!detail.parameters) detail.parameters.emplace();
  if (detail.container_properties) add_empty_lists(*detail.container_properties);
  if (detail.node_properties)
    for (auto& range : *detail.node_properties->node_range_properties)
      if (range.container) add_empty_lists(*range.container);
  return detail;
}

}  // namespace trainyard::api::batch_api
