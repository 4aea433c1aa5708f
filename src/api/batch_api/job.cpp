// Converts Batch jobs: requests to job specifications, and jobs to descriptions.
#include <algorithm>

#include "base/check.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch/limits.hpp"
#include "batch/status.hpp"
#include "batch_api/container.hpp"
#include "batch_api/conversions.hpp"
#include "batch_api/empty_lists.hpp"
#include "batch_api/network_interfaces.hpp"
#include "batch_api/no_effect.hpp"
#include "batch_api/nodes.hpp"
#include "control/control.hpp"
#include "domain/stage.hpp"
#include "operations/job_role.hpp"
#include "operations/listed_failure.hpp"
#include "protocol/json.hpp"
#include "reconcile/state.hpp"
#include "sagemaker/training_job.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;

const shapes::Shape& detail_shape() {
  return *batch::DescribeJobs::shape().output->members.front().shape->element;
}

Failure not_yet(const std::string& what, const std::string& instead) {
  return client_exception(what + " cannot be run by this server yet: " + instead);
}

std::map<std::string, std::string> parameters_of(const batch::SubmitJobRequest& request,
                                                 const batch::JobDefinition& definition) {
  auto parameters = request.parameters.value_or(std::map<std::string, std::string>());
  if (definition.parameters)
    parameters.insert(definition.parameters->begin(), definition.parameters->end());
  return parameters;
}

Outcome<int64_t> runtime_seconds_max_of(const std::optional<batch::JobTimeout>& timeout) {
  if (!timeout || !timeout->attempt_duration_seconds) return catalog::kRuntimeSecondsMax;
  if (*timeout->attempt_duration_seconds < catalog::kAttemptSecondsMin)
    return client_exception("timeout.attemptDurationSeconds must be at least " +
                            std::to_string(catalog::kAttemptSecondsMin));
  return std::min(*timeout->attempt_duration_seconds, catalog::kRuntimeSecondsMax);
}

// Rejects unsupported properties that a user would rely on. Harmless ones are kept and echoed.
Outcome<Done> refuse_what_is_not_here(const batch::SubmitJobRequest& request,
                                      const batch::JobDefinition& definition) {
  if (definition.node_properties &&
      (request.container_overrides || request.ecs_properties_override))
    return client_exception(
        "containerOverrides are for jobs of one container: a multi-node parallel job takes "
        "nodeOverrides");
  if (!definition.node_properties && request.node_overrides)
    return client_exception(
        "nodeOverrides are for multi-node parallel jobs, and this definition is of type " +
        definition.type.value_or(""));
  if (definition.node_properties && request.array_properties &&
      request.array_properties->size.value_or(0) != 0)
    return client_exception("A multi-node parallel job cannot be an array job");
  if (definition.eks_properties || request.eks_properties_override)
    return not_yet("eksProperties", "use containerProperties");
  return Done{};
}

int64_t milliseconds(Instant instant) { return to_milliseconds(instant); }

domain::HostIndex main_of(const domain::Job& job) { return job.spec.main_host().value_or(0); }

batch::AttemptDetail describe_attempt(const domain::Job& job, const domain::Attempt& attempt) {
  const domain::AttemptEnd end = catalog::end_of(job, attempt);
  batch::AttemptDetail detail;
  detail.container.emplace();
  if (end.exit_code) detail.container->exit_code = *end.exit_code;
  detail.container->reason = unless_empty(end.reason);
  detail.container->network_interfaces = network_interfaces_of(job, attempt, main_of(job));
  detail.container->task_arn = reconcile::task_arn(job, attempt, main_of(job));
  detail.container->container_instance_arn =
      reconcile::container_instance_arn(job, attempt, main_of(job));
  if (attempt.training_started) {
    detail.container->log_stream_name = reconcile::log_stream_of(job, attempt, main_of(job));
    detail.started_at = milliseconds(*attempt.training_started);
  }
  detail.stopped_at = milliseconds(*attempt.ended);
  detail.status_reason = catalog::attempt_status_reason(job, attempt);
  return detail;
}

void describe_container(const domain::Job& job, batch::JobDetail& detail) {
  if (!detail.container) detail.container.emplace();
  detail.container->network_interfaces.emplace();
  const domain::Attempt* attempt = job.attempt();
  if (!attempt) return;
  detail.container->network_interfaces = network_interfaces_of(job, *attempt, 0);
  detail.container->task_arn = reconcile::task_arn(job, *attempt, 0);
  detail.container->container_instance_arn = reconcile::container_instance_arn(job, *attempt, 0);
  if (attempt->training_started) {
    detail.started_at = milliseconds(*attempt->training_started);
    detail.container->log_stream_name = reconcile::log_stream_of(job, *attempt, 0);
  }
  if (!attempt->ended) return;
  const domain::AttemptEnd end = catalog::end_of(job, *attempt);
  if (end.exit_code) detail.container->exit_code = *end.exit_code;
  detail.container->reason = unless_empty(end.reason);
}

// The container or the nodes in a job's description.
struct Body {
  std::optional<batch::ContainerProperties> container;
  std::optional<batch::NodeProperties> nodes;
};

Outcome<Body> container_into(domain::JobSpec& spec, const batch::JobDefinition& definition,
                             const batch::SubmitJobRequest& request,
                             const std::map<std::string, std::string>& parameters,
                             const Settings& settings, const std::string& region) {
  batch::ContainerProperties container;
  auto overrides = request.container_overrides.value_or(batch::ContainerOverrides());
  if (definition.ecs_properties) {
    if (request.container_overrides)
      return client_exception(
          "containerOverrides are for containerProperties: use ecsPropertiesOverride");
    container = TRY(container_of_task(*definition.ecs_properties));
    if (request.ecs_properties_override)
      overrides = TRY(overrides_of_task(*request.ecs_properties_override));
  } else if (!definition.container_properties || request.ecs_properties_override) {
    return cannot_run("A job without containerProperties or ecsProperties", "name a container");
  } else {
    container = *definition.container_properties;
  }
  TRY(override_container(container, overrides));
  put_parameters(container, parameters);
  domain::InstanceGroup group = TRY(group_of(container, settings, region));
  spec.image = std::move(group.program->image);
  spec.arguments = std::move(group.program->arguments);
  spec.environment = std::move(group.program->environment);
  group.program.reset();
  spec.groups.push_back(std::move(group));
  spec.volume_gib = TRY(volume_gib_of(container));
  spec.role_arn = container.job_role_arn.value_or("");
  Body body;
  body.container = std::move(container);
  return body;
}

Outcome<Body> nodes_into(domain::JobSpec& spec, const batch::NodeProperties& properties,
                         const batch::SubmitJobRequest& request,
                         const std::map<std::string, std::string>& parameters,
                         const Settings& settings, const std::string& region) {
  Nodes nodes = TRY(nodes_of(properties, request.node_overrides, parameters, settings, region));
  spec.main_node = nodes.main;
  spec.groups = std::move(nodes.groups);
  // In lists and descriptions the job has the program of its main node.
  const domain::Program& program = *spec.group(nodes.main).program;
  spec.image = program.image;
  spec.arguments = program.arguments;
  spec.environment = program.environment;
  spec.volume_gib = nodes.volume_gib;
  spec.role_arn = std::move(nodes.role_arn);
  Body body;
  body.nodes = std::move(nodes.properties);
  return body;
}

// The notes on the container of a job, or on the containers of its nodes, each once.
std::vector<std::string> container_notes(const Json& detail) {
  Json containers = Json::array();
  if (detail.contains("container")) containers.push_back(detail["container"]);
  if (detail.contains("nodeProperties") && detail["nodeProperties"].contains("nodeRangeProperties"))
    for (const Json& range : detail["nodeProperties"]["nodeRangeProperties"])
      if (range.contains("container")) containers.push_back(range["container"]);
  std::vector<std::string> notes;
  for (const Json& container : containers)
    for (std::string& note : notes_of(container, kContainerNoEffect))
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  return notes;
}

}  // namespace

std::string with_parameters(const std::string& word,
                            const std::map<std::string, std::string>& parameters) {
  constexpr std::string_view kMark = "Ref::";
  const auto of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  std::string out;
  for (size_t at = 0; at < word.size();) {
    const size_t mark = word.find(kMark, at);
    out.append(word, at, mark == std::string::npos ? mark : mark - at);
    if (mark == std::string::npos) break;
    size_t end = mark + kMark.size();
    while (end < word.size() && of_name(word[end])) ++end;
    const std::string name = word.substr(mark + kMark.size(), end - mark - kMark.size());
    const auto found = parameters.find(name);
    out += found == parameters.end() ? word.substr(mark, end - mark) : found->second;
    at = end;
  }
  return out;
}

Outcome<domain::JobSpec> batch_spec_of(const batch::SubmitJobRequest& request,
                                       const catalog::JobDefinition& kept, const std::string& queue,
                                       const std::string& region, const std::string& account,
                                       const std::string& id, const Settings& settings) {
  TRY(check_batch_name(*request.job_name, "jobName"));
  const auto definition = TRY(describe(kept, account));
  TRY(refuse_what_is_not_here(request, definition));
  auto parameters = parameters_of(request, definition);

  domain::JobSpec spec;
  spec.queue.emplace().name = queue;
  spec.contract = domain::Contract::plain;
  spec.display_name = *request.job_name;
  spec.definition = *definition.job_definition_arn;
  const auto retries = request.retry_strategy ? request.retry_strategy : definition.retry_strategy;
  if (retries) TRY(read_retries(*retries, spec.retry));
  TRY(read_array(request, spec));
  TRY(read_queue_position(request, definition, *spec.queue));
  const auto timeout = request.timeout ? request.timeout : definition.timeout;
  spec.max_runtime_seconds = TRY(runtime_seconds_max_of(timeout));
  Body body;
  if (definition.node_properties)
    body =
        TRY(nodes_into(spec, *definition.node_properties, request, parameters, settings, region));
  else
    body = TRY(container_into(spec, definition, request, parameters, settings, region));
  if (spec.role_arn.empty())
    spec.role_arn = "arn:aws:iam::" + account + ":role/" + std::string(kDefaultJobRole);
  auto role = job_role(settings, account, spec.role_arn);
  if (!role) return client_exception("jobRoleArn: " + role.error().message);
  spec.role_arn = *std::move(role);

  batch::JobDetail detail;
  detail.job_arn = catalog::arn_of(account, region, catalog::kJobArn, id);
  detail.job_name = spec.display_name;
  detail.job_id = id;
  detail.job_queue = catalog::arn_of(account, region, catalog::kQueueArn, queue);
  detail.job_definition = spec.definition;
  detail.parameters = std::move(parameters);
  detail.depends_on = request.depends_on.value_or(std::vector<batch::JobDependency>());
  detail.retry_strategy =
      retries ? retries : batch::RetryStrategy{1, std::vector<batch::EvaluateOnExit>()};
  detail.timeout = timeout;
  detail.share_identifier = request.share_identifier;
  if (spec.queue->priority != 0) detail.scheduling_priority = spec.queue->priority;
  detail.consumable_resource_properties = describe_consumption(*spec.queue, region, account);
  detail.propagate_tags =
      request.propagate_tags ? request.propagate_tags : definition.propagate_tags;
  detail.platform_capabilities =
      definition.platform_capabilities.value_or(std::vector<std::string>{"EC2"});
  detail.node_properties = std::move(body.nodes);
  std::string text;
  write_json(detail_shape(), &detail, text);
  spec.request = TRY(parse_json(text));
  if (body.container) spec.request["container"] = TRY(json_of(*body.container));
  spec.notes = container_notes(spec.request);
  if (dump(spec.request).size() > kSubmitBytesMax)
    return client_exception("a job has at most " + std::to_string(kSubmitBytesMax) + " bytes");
  return spec;
}

Result<void> read_container(const batch::ContainerProperties& container,
                            batch::ContainerDetail& detail) {
  const auto& shape =
      *std::ranges::find(detail_shape().members, "container", &shapes::Member::name)->shape;
  const auto json = json_of(container);
  if (!json) return internal("a container's properties cannot be written");
  TRY(read_json(shape, dump(*json), &detail));
  add_empty_lists(detail);
  return {};
}

Result<batch::JobDetail> describe(const domain::Job& job) {
  CHECK(job.spec.queue, "the job is a Batch job");
  batch::JobDetail detail;
  TRY(read_json(detail_shape(), dump(job.spec.request), &detail));
  detail.job_id = job.key.name;  // a child shares the rest with its array
  detail.job_arn = control::job_arn(job);
  detail.status = catalog::status_name(domain::stage_of(job));
  detail.status_reason = unless_empty(catalog::status_reason(job));
  detail.created_at = milliseconds(job.created);
  detail.is_cancelled = job.cancellation == domain::Cancellation::cancelled;
  detail.is_terminated = job.cancellation == domain::Cancellation::terminated;
  if (detail.container) add_empty_lists(*detail.container);
  detail.attempts.emplace();
  for (const auto& attempt : job.attempts)
    if (attempt.ended) detail.attempts->push_back(describe_attempt(job, attempt));
  if (job.spec.main_host()) {
    if (job.attempt() && job.attempt()->training_started)
      detail.started_at = milliseconds(*job.attempt()->training_started);
  } else {
    describe_container(job, detail);
  }
  if (job.finished())
    detail.stopped_at =
        milliseconds(job.attempt() && job.attempt()->ended ? *job.attempt()->ended : job.modified);
  return detail;
}

batch::JobSummary summary_of_batch(const domain::Job& job) {
  CHECK(job.spec.queue, "the job is a Batch job");
  batch::JobSummary summary;
  summary.job_arn = control::job_arn(job);
  summary.job_id = job.key.name;
  summary.job_name = job.spec.display_name;
  summary.job_definition = job.spec.definition;
  if (!job.spec.queue->share.empty()) summary.share_identifier = job.spec.queue->share;
  summary.created_at = milliseconds(job.created);
  summary.status = catalog::status_name(domain::stage_of(job));
  summary.status_reason = unless_empty(catalog::status_reason(job));
  const domain::Attempt* attempt = job.attempt();
  if (attempt && attempt->training_started)
    summary.started_at = milliseconds(*attempt->training_started);
  if (job.spec.main_host()) {
    summary.node_properties.emplace();
    summary.node_properties->num_nodes = job.spec.hosts();
  }
  if (job.finished())
    summary.stopped_at = milliseconds(attempt && attempt->ended ? *attempt->ended : job.modified);
  if (attempt && attempt->ended) {
    const domain::AttemptEnd end = catalog::end_of(job, *attempt);
    summary.container.emplace();
    if (end.exit_code) summary.container->exit_code = *end.exit_code;
    summary.container->reason = unless_empty(listed_failure(end.reason));
  }
  return summary;
}

}  // namespace trainyard::api::batch_api
