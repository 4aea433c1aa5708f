// A Batch job, from the request that submits it to its description.
#include <algorithm>

#include "api/operations/batch.hpp"
#include "api/operations/training_job.hpp"
#include "api/protocol/json.hpp"
#include "base/check.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "control/control.hpp"
#include "control/state.hpp"

namespace trainyard::api {
namespace {

namespace batch = shapes::batch;

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kMemoryMebibytesMin = 4;  // as AWS
constexpr int64_t kVolumeGibMax = 16'384;   // as training jobs'

const shapes::Shape& detail_shape() {
  return *batch::DescribeJobs::shape().output->members.front().shape->element;
}

template <class T>
bool filled(const std::optional<std::vector<T>>& list) {
  return list && !list->empty();
}

Failure not_yet(const std::string& what, const std::string& instead) {
  return client_exception(what + " cannot be run by this server yet: " + instead);
}

// What a person would rely on and does not get. What is harmless here is kept and echoed.
Outcome<Done> refuse_what_is_not_here(const batch::SubmitJobRequest& request,
                                      const batch::JobDefinition& definition) {
  if (definition.type.value_or("") != "container" || definition.node_properties || request.node_overrides)
    return not_yet("A multinode job", "submit jobs of one container");
  if (definition.eks_properties || request.eks_properties_override)
    return not_yet("eksProperties", "use containerProperties");
  if (definition.ecs_properties || request.ecs_properties_override)
    return not_yet("ecsProperties", "use containerProperties");
  return Done{};
}

Outcome<Done> refuse_what_is_not_here(const batch::ContainerProperties& container) {
  if (filled(container.volumes) || filled(container.mount_points))
    return not_yet("containerProperties.volumes", "have the container fetch its data");
  if (filled(container.secrets)) return not_yet("containerProperties.secrets", "use environment");
  if (container.privileged.value_or(false)) return not_yet("A privileged container", "leave privileged out");
  if (container.readonly_root_filesystem.value_or(false))
    return not_yet("readonlyRootFilesystem", "leave it out");
  if (container.user.value_or("") != "")
    return not_yet("containerProperties.user", "name the user in the image");
  if (filled(container.ulimits)) return not_yet("containerProperties.ulimits", "set them in the command");
  if (container.linux_parameters) return not_yet("containerProperties.linuxParameters", "leave it out");
  if (container.repository_credentials)
    return not_yet("containerProperties.repositoryCredentials", "give them to this server's config");
  if (container.log_configuration && container.log_configuration->log_driver.value_or("awslogs") != "awslogs")
    return not_yet("The log driver " + *container.log_configuration->log_driver, "use awslogs");
  return Done{};
}

template <class Pair>
std::map<std::string, std::string> variables_of(const std::optional<std::vector<Pair>>& pairs) {
  std::map<std::string, std::string> variables;
  if (!pairs) return variables;
  for (const auto& each : *pairs)
    if (each.name) variables[*each.name] = each.value.value_or("");
  return variables;
}

// By type; the old members vcpus and memory are the same by another name, and what requirements say goes before them.
template <class Container>
std::map<std::string, std::string> resources_of(const Container& container) {
  std::map<std::string, std::string> resources;
  if (container.vcpus) resources["VCPU"] = std::to_string(*container.vcpus);
  if (container.memory) resources["MEMORY"] = std::to_string(*container.memory);
  if (container.resource_requirements)
    for (const auto& each : *container.resource_requirements) resources[*each.type] = *each.value;
  return resources;
}

// What the container is given, from the definition's words and those of the request.
void override_container(batch::ContainerProperties& container, const batch::ContainerOverrides& overrides) {
  if (overrides.command) container.command = overrides.command;
  auto variables = variables_of(container.environment);
  for (const auto& [name, value] : variables_of(overrides.environment)) variables[name] = value;
  container.environment.emplace();
  for (const auto& [name, value] : variables) {
    batch::KeyValuePair pair;
    pair.name = name;
    pair.value = value;
    container.environment->push_back(std::move(pair));
  }
  auto resources = resources_of(container);
  for (const auto& [type, value] : resources_of(overrides)) resources[type] = value;
  container.vcpus.reset();
  container.memory.reset();
  container.resource_requirements.emplace();
  for (const auto& [type, value] : resources) {
    batch::ResourceRequirement requirement;
    requirement.type = type;
    requirement.value = value;
    container.resource_requirements->push_back(std::move(requirement));
  }
}

Outcome<int64_t> whole_number(const std::map<std::string, std::string>& resources, const std::string& type,
                              int64_t least) {
  const auto found = resources.find(type);
  if (found == resources.end()) return int64_t{0};
  const auto value = parse_int(found->second);
  if (!value || *value < least)
    return client_exception("The resource requirement " + type + " must be a whole number of at least " +
                            std::to_string(least) + ", not '" + shorten(found->second, 40) + "'");
  return *value;
}

Outcome<domain::InstanceGroup> group_of(const batch::ContainerProperties& container) {
  const auto resources = resources_of(container);
  const auto cpus_text = resources.find("VCPU");
  if (cpus_text == resources.end() || !resources.contains("MEMORY"))
    return client_exception("The container needs resource requirements of the types VCPU and MEMORY");
  double cpus = 0;
  try {
    size_t used = 0;
    cpus = std::stod(cpus_text->second, &used);  // Fargate's may be 0.25
    if (used != cpus_text->second.size()) cpus = 0;
  } catch (const std::exception&) {
    cpus = 0;
  }
  if (!(cpus > 0) || cpus > 1e6)
    return client_exception("The resource requirement VCPU must be a number above 0, not '" +
                            shorten(cpus_text->second, 40) + "'");
  const int64_t memory = TRY(whole_number(resources, "MEMORY", kMemoryMebibytesMin));
  const int64_t gpus = TRY(whole_number(resources, "GPU", 1));
  if (memory > (int64_t{1} << 40))
    return client_exception("The resource requirement MEMORY is in MiB and must be at most 2^40");
  domain::InstanceGroup group;
  group.name = "default";
  group.instance_type = cpus_text->second + " vCPU, " + std::to_string(memory) + " MiB";
  if (gpus > 0) group.instance_type += ", " + std::to_string(gpus) + " GPU";
  group.share = domain::Share{cpus, memory * kMebibyte, gpus};
  return group;
}

Outcome<Done> read_retries(const batch::RetryStrategy& strategy, domain::BatchPart& part) {
  if (strategy.attempts && (*strategy.attempts < 1 || *strategy.attempts > domain::kBatchAttemptsMax))
    return client_exception("retryStrategy.attempts must be between 1 and " +
                            std::to_string(domain::kBatchAttemptsMax));
  part.attempts_max = uint32_t(strategy.attempts.value_or(1));
  if (!strategy.evaluate_on_exit) return Done{};
  if (!strategy.evaluate_on_exit->empty() && !strategy.attempts)
    return client_exception("retryStrategy.evaluateOnExit needs retryStrategy.attempts");
  if (strategy.evaluate_on_exit->size() > domain::kRetryRulesMax)
    return client_exception("retryStrategy.evaluateOnExit has at most " +
                            std::to_string(domain::kRetryRulesMax) + " rules");
  for (const auto& rule : *strategy.evaluate_on_exit) {
    const std::string action = to_lower(*rule.action);
    if (action != "retry" && action != "exit")
      return client_exception("retryStrategy.evaluateOnExit.action must be RETRY or EXIT, not '" +
                              shorten(*rule.action, 40) + "'");
    part.retry_rules.push_back({rule.on_status_reason.value_or(""), rule.on_reason.value_or(""),
                                rule.on_exit_code.value_or(""), action == "retry"});
  }
  return Done{};
}

int64_t milliseconds(Instant instant) { return to_milliseconds(instant); }

std::optional<std::string> unless_empty(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

batch::AttemptDetail describe_attempt(const domain::Job& job, const domain::Attempt& attempt) {
  const domain::AttemptEnd end = domain::end_of(attempt);
  batch::AttemptDetail detail;
  detail.container.emplace();
  if (end.exit_code) detail.container->exit_code = *end.exit_code;
  detail.container->reason = unless_empty(end.reason);
  if (attempt.training_started) {
    detail.container->log_stream_name = control::log_stream_of(job, attempt, 0);
    detail.started_at = milliseconds(*attempt.training_started);
  }
  detail.stopped_at = milliseconds(*attempt.ended);
  detail.status_reason = end.status_reason;
  return detail;
}

}  // namespace

std::string with_parameters(const std::string& word, const std::map<std::string, std::string>& parameters) {
  constexpr std::string_view kMark = "Ref::";
  const auto of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
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
                                       const domain::JobDefinition& kept, const std::string& queue,
                                       const std::string& region, const std::string& account,
                                       const std::string& id) {
  TRY(check_batch_name(*request.job_name, "jobName"));
  const auto definition = TRY(describe(kept, account));
  TRY(refuse_what_is_not_here(request, definition));
  if (!definition.container_properties)
    return not_yet("A job without containerProperties", "name a container");
  batch::ContainerProperties container = *definition.container_properties;
  TRY(refuse_what_is_not_here(container));
  override_container(container, request.container_overrides.value_or(batch::ContainerOverrides()));

  auto parameters = definition.parameters.value_or(std::map<std::string, std::string>());
  for (const auto& [name, value] : request.parameters.value_or(std::map<std::string, std::string>()))
    parameters[name] = value;
  if (container.command)
    for (std::string& word : *container.command) word = with_parameters(word, parameters);

  domain::JobSpec spec;
  domain::BatchPart& part = spec.batch.emplace();
  part.name = *request.job_name;
  part.queue = queue;
  part.definition = *definition.job_definition_arn;
  const auto retries = request.retry_strategy ? request.retry_strategy : definition.retry_strategy;
  if (retries) TRY(read_retries(*retries, part));
  TRY(read_array(request, part));
  TRY(read_place_in_queue(request, definition, part));
  const auto timeout = request.timeout ? request.timeout : definition.timeout;
  spec.max_runtime_seconds = domain::kBatchRuntimeSecondsMax;
  if (timeout && timeout->attempt_duration_seconds) {
    if (*timeout->attempt_duration_seconds < domain::kBatchAttemptSecondsMin)
      return client_exception("timeout.attemptDurationSeconds must be at least " +
                              std::to_string(domain::kBatchAttemptSecondsMin));
    spec.max_runtime_seconds = std::min(*timeout->attempt_duration_seconds, domain::kBatchRuntimeSecondsMax);
  }
  spec.volume_gib =
      container.ephemeral_storage ? *container.ephemeral_storage->size_in_gi_b : kVolumeGibDefault;
  if (spec.volume_gib < 1 || spec.volume_gib > kVolumeGibMax)
    return client_exception("ephemeralStorage.sizeInGiB must be between 1 and " +
                            std::to_string(kVolumeGibMax));
  spec.image = *container.image;
  spec.arguments = container.command.value_or(std::vector<std::string>());
  spec.environment = variables_of(container.environment);
  for (const auto& [name, value] : spec.environment)
    if (name.starts_with(domain::kReservedVariables))
      return client_exception("Environment variable names must not begin with AWS_BATCH_: " +
                              shorten(name, 128));
  spec.groups.push_back(TRY(group_of(container)));
  spec.role_arn = container.job_role_arn.value_or("");
  if (spec.role_arn.empty())
    spec.role_arn = "arn:aws:iam::" + account + ":role/" + std::string(kDefaultJobRole);

  batch::JobDetail detail;
  detail.job_arn = domain::batch_arn(account, region, domain::kJobArn, id);
  detail.job_name = part.name;
  detail.job_id = id;
  detail.job_queue = domain::batch_arn(account, region, domain::kQueueArn, queue);
  detail.job_definition = part.definition;
  detail.parameters = std::move(parameters);
  detail.depends_on = request.depends_on.value_or(std::vector<batch::JobDependency>());
  detail.retry_strategy = retries ? retries : batch::RetryStrategy{1, std::vector<batch::EvaluateOnExit>()};
  detail.timeout = timeout;
  detail.share_identifier = request.share_identifier;
  if (part.priority != 0) detail.scheduling_priority = part.priority;
  detail.consumable_resource_properties = consumption_words(part, region, account);
  detail.propagate_tags = request.propagate_tags ? request.propagate_tags : definition.propagate_tags;
  detail.platform_capabilities = definition.platform_capabilities.value_or(std::vector<std::string>{"EC2"});
  std::string words;
  write_json(detail_shape(), &detail, words);
  spec.request = TRY(parse_json(words));
  std::string container_words;
  const auto& members = batch::RegisterJobDefinition::shape().input->members;
  write_json(*std::ranges::find(members, "containerProperties", &shapes::Member::name)->shape, &container,
             container_words);
  spec.request["container"] = TRY(parse_json(container_words));
  if (dump(spec.request).size() > kSubmitBytesMax)
    return client_exception("a job has at most " + std::to_string(kSubmitBytesMax) + " bytes");
  return spec;
}

Result<batch::JobDetail> describe(const domain::Job& job) {
  CHECK(job.spec.batch, "only Batch jobs are described so");
  batch::JobDetail detail;
  TRY(read_json(detail_shape(), dump(job.spec.request), &detail));
  detail.job_id = job.key.name;  // of a child, the rest are its array's words
  detail.job_arn = control::job_arn(job);
  detail.status = domain::to_string(domain::batch_status(job));
  detail.status_reason = unless_empty(domain::batch_status_reason(job));
  detail.created_at = milliseconds(job.created);
  detail.is_cancelled = job.withdrawn == domain::Withdrawn::cancelled;
  detail.is_terminated = job.withdrawn == domain::Withdrawn::terminated;
  detail.attempts.emplace();
  for (const auto& attempt : job.attempts)
    if (attempt.ended) detail.attempts->push_back(describe_attempt(job, attempt));
  if (!detail.container) detail.container.emplace();
  if (const domain::Attempt* attempt = job.attempt()) {
    if (attempt->training_started) {
      detail.started_at = milliseconds(*attempt->training_started);
      detail.container->log_stream_name = control::log_stream_of(job, *attempt, 0);
    }
    if (attempt->ended) {
      const domain::AttemptEnd end = domain::end_of(*attempt);
      if (end.exit_code) detail.container->exit_code = *end.exit_code;
      detail.container->reason = unless_empty(end.reason);
    }
  }
  if (job.finished())
    detail.stopped_at =
        milliseconds(job.attempt() && job.attempt()->ended ? *job.attempt()->ended : job.modified);
  return detail;
}

batch::JobSummary summary_of_batch(const domain::Job& job) {
  CHECK(job.spec.batch, "only Batch jobs are listed so");
  batch::JobSummary summary;
  summary.job_arn = control::job_arn(job);
  summary.job_id = job.key.name;
  summary.job_name = job.spec.batch->name;
  summary.job_definition = job.spec.batch->definition;
  if (!job.spec.batch->share.empty()) summary.share_identifier = job.spec.batch->share;
  summary.created_at = milliseconds(job.created);
  summary.status = domain::to_string(domain::batch_status(job));
  summary.status_reason = unless_empty(domain::batch_status_reason(job));
  const domain::Attempt* attempt = job.attempt();
  if (attempt && attempt->training_started) summary.started_at = milliseconds(*attempt->training_started);
  if (job.finished())
    summary.stopped_at = milliseconds(attempt && attempt->ended ? *attempt->ended : job.modified);
  if (attempt && attempt->ended) {
    const domain::AttemptEnd end = domain::end_of(*attempt);
    summary.container.emplace();
    if (end.exit_code) summary.container->exit_code = *end.exit_code;
    summary.container->reason = unless_empty(end.reason);
  }
  return summary;
}

}  // namespace trainyard::api
