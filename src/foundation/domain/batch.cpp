#include "domain/batch.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "domain/array.hpp"
#include "domain/json_fields.hpp"
#include "domain/limits.hpp"

namespace trainyard::domain {
namespace {

constexpr std::string_view kKinds[] = {"compute_environment", "job_queue",           "job_definition",
                                       "scheduling_policy",   "service_environment", "quota_share",
                                       "consumable_resource"};  // as BatchResource
static_assert(std::size(kKinds) == std::variant_size_v<BatchResource>);
constexpr size_t kInstanceDigits = 17;  // of an instance's id, as AWS
constexpr std::string_view kStatuses[] = {"SUBMITTED", "PENDING",   "RUNNABLE", "STARTING",
                                          "RUNNING",   "SUCCEEDED", "FAILED"};  // as BatchStatus

template <class Map>
size_t count_in(const Map& map, const std::string& region) {
  return size_t(std::ranges::count_if(map, [&](const auto& each) { return each.first.region == region; }));
}

Result<BatchResource> changed_one(const BatchCatalog& yard, const JobDefinition*, ResourceChange how,
                                  ComputeEnvironment changed) {
  const ComputeEnvironment* present = yard.environment(changed.key);
  if (how == ResourceChange::create) {
    if (present) return conflict("Object already exists");
    if (count_in(yard.environments, changed.key.region) >= kEnvironmentsMax)
      return invalid("a region has at most " + std::to_string(kEnvironmentsMax) + " compute environments");
    return BatchResource(std::move(changed));
  }
  if (!present) return not_found("the compute environment " + changed.key.name + " does not exist");
  if (how == ResourceChange::update) return BatchResource(std::move(changed));
  if (present->enabled) return conflict("Cannot delete, resource must be disabled: " + changed.key.name);
  for (const auto& [key, queue] : yard.queues)
    if (key.region == changed.key.region && !queue.service &&
        std::ranges::find(queue.environments, changed.key.name) != queue.environments.end())
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return BatchResource(*present);
}

// A queue's policy may be replaced by another one of its kind, and neither added nor taken away.
Result<void> check_same_policy(const BatchCatalog& yard, const JobQueue& present, const JobQueue& next) {
  const SchedulingPolicy* before = yard.policy_of(present);
  const SchedulingPolicy* after = yard.policy_of(next);
  if (bool(before) != bool(after))
    return conflict("the scheduling policy of a job queue can be replaced, but not added or removed: " +
                    next.key.name);
  if (before && before->kind != after->kind)
    return conflict("a fair-share policy cannot take the place of one of quota shares, nor the reverse: " +
                    next.key.name);
  return {};
}

Result<BatchResource> changed_one(const BatchCatalog& yard, const JobDefinition*, ResourceChange how,
                                  JobQueue changed) {
  const JobQueue* present = yard.queue(changed.key);
  if (how == ResourceChange::create && present) return conflict("Object already exists");
  if (how != ResourceChange::create && !present)
    return not_found("the job queue " + changed.key.name + " does not exist");
  if (how == ResourceChange::create && count_in(yard.queues, changed.key.region) >= kQueuesMax)
    return invalid("a region has at most " + std::to_string(kQueuesMax) + " job queues");
  if (how == ResourceChange::remove) {
    if (present->enabled) return conflict("Cannot delete, resource must be disabled: " + changed.key.name);
    for (const auto& [key, share] : yard.quota_shares)
      if (key.region == changed.key.region && share.queue() == changed.key.name)
        return conflict("Cannot delete, found existing QuotaShare relationship: " + share.name());
    return BatchResource(*present);
  }
  for (const std::string& name : changed.environments)
    if (changed.service ? !yard.service_environment({changed.key.region, name})
                        : !yard.environment({changed.key.region, name}))
      return not_found((changed.service ? "the service environment " : "the compute environment ") + name +
                       " does not exist");
  if (!changed.policy.empty() && !yard.policy_of(changed))
    return not_found("the scheduling policy " + changed.policy + " does not exist");
  if (!changed.service && yard.policy_of(changed) &&
      yard.policy_of(changed)->kind == SchedulingPolicy::Kind::quota_shares)
    return invalid("quota shares are for job queues of the type SAGEMAKER_TRAINING: " + changed.key.name);
  if (how == ResourceChange::update) TRY(check_same_policy(yard, *present, changed));
  return BatchResource(std::move(changed));
}

Result<BatchResource> changed_one(const BatchCatalog&, const JobDefinition* last, ResourceChange how,
                                  JobDefinition changed) {
  if (how == ResourceChange::create) changed.revision = last ? last->revision + 1 : 1;
  return BatchResource(std::move(changed));
}

// What is the same for all of these: names are taken once, what is not there is not changed, and a region has so many.
template <class Resource>
Result<void> check_presence(const std::map<JobKey, Resource>& all, ResourceChange how, const JobKey& key,
                            const std::string& what, size_t most) {
  const bool present = all.contains(key);
  if (how != ResourceChange::create)
    return present ? Result<void>() : not_found("the " + what + " " + key.name + " does not exist");
  if (present) return conflict("Object already exists");
  if (count_in(all, key.region) >= most)
    return invalid("a region has at most " + std::to_string(most) + " of what this is: " + what);
  return {};
}

Result<BatchResource> changed_one(const BatchCatalog& yard, const JobDefinition*, ResourceChange how,
                                  SchedulingPolicy changed) {
  TRY(check_presence(yard.policies, how, changed.key, "scheduling policy", kPoliciesMax));
  if (how == ResourceChange::update && yard.policies.at(changed.key).kind != changed.kind)
    return invalid("a fairsharePolicy cannot become a quotaSharePolicy, nor the reverse: " +
                   changed.key.name);
  if (how != ResourceChange::remove) return BatchResource(std::move(changed));
  for (const auto& [key, queue] : yard.queues)
    if (key.region == changed.key.region && queue.policy == changed.key.name)
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return BatchResource(yard.policies.at(changed.key));
}

Result<BatchResource> changed_one(const BatchCatalog& yard, const JobDefinition*, ResourceChange how,
                                  ServiceEnvironment changed) {
  TRY(check_presence(yard.service_environments, how, changed.key, "service environment",
                     kServiceEnvironmentsMax));
  if (how != ResourceChange::remove) return BatchResource(std::move(changed));
  const ServiceEnvironment& present = yard.service_environments.at(changed.key);
  if (present.enabled) return conflict("Cannot delete, resource must be disabled: " + changed.key.name);
  for (const auto& [key, queue] : yard.queues)
    if (key.region == changed.key.region && queue.service &&
        std::ranges::find(queue.environments, changed.key.name) != queue.environments.end())
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return BatchResource(present);
}

Result<BatchResource> changed_one(const BatchCatalog& yard, const JobDefinition*, ResourceChange how,
                                  QuotaShare changed) {
  const JobQueue* queue = yard.queue({changed.key.region, changed.queue()});
  if (!queue) return not_found("the job queue " + changed.queue() + " does not exist");
  const SchedulingPolicy* policy = yard.policy_of(*queue);
  if (!policy || policy->kind != SchedulingPolicy::Kind::quota_shares)
    return invalid("the job queue " + changed.queue() + " has no scheduling policy with a quotaSharePolicy");
  const auto of_queue = std::ranges::count_if(yard.quota_shares, [&](const auto& each) {
    return each.first.region == changed.key.region && each.second.queue() == changed.queue();
  });
  if (how == ResourceChange::create && !yard.quota_share(changed.key) &&
      size_t(of_queue) >= kQuotaSharesOfQueueMax)
    return invalid("a job queue has at most " + std::to_string(kQuotaSharesOfQueueMax) + " quota shares");
  TRY(check_presence(yard.quota_shares, how, changed.key, "quota share",
                     kQueuesMax * kQuotaSharesOfQueueMax));
  if (how != ResourceChange::remove) return BatchResource(std::move(changed));
  const QuotaShare& present = yard.quota_shares.at(changed.key);
  if (present.enabled) return conflict("Cannot delete, resource must be disabled: " + changed.key.name);
  return BatchResource(present);
}

Result<BatchResource> changed_one(const BatchCatalog& yard, const JobDefinition*, ResourceChange how,
                                  ConsumableResource changed) {
  TRY(check_presence(yard.resources, how, changed.key, "consumable resource", kConsumableResourcesMax));
  if (how != ResourceChange::remove && (changed.total < 0 || changed.total > kCountedMax))
    return invalid("the total quantity of " + changed.key.name + " must be between 0 and " +
                   std::to_string(kCountedMax) + ", not " + std::to_string(changed.total));
  if (how == ResourceChange::create) return BatchResource(std::move(changed));
  const ConsumableResource& present = yard.resources.at(changed.key);
  if (how == ResourceChange::remove) return BatchResource(present);
  return BatchResource(TRY(updated(present, changed)));
}

template <class Resource>
const Resource* find_in(const std::map<JobKey, Resource>& all, const JobKey& key) {
  const auto found = all.find(key);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

const ComputeEnvironment* BatchCatalog::environment(const JobKey& key) const {
  return find_in(environments, key);
}
const JobQueue* BatchCatalog::queue(const JobKey& key) const { return find_in(queues, key); }
const SchedulingPolicy* BatchCatalog::policy_of(const JobQueue& queue) const {
  return queue.policy.empty() ? nullptr : find_in(policies, JobKey{queue.key.region, queue.policy});
}
const ServiceEnvironment* BatchCatalog::service_environment(const JobKey& key) const {
  return find_in(service_environments, key);
}
const QuotaShare* BatchCatalog::quota_share(const JobKey& key) const { return find_in(quota_shares, key); }
const ConsumableResource* BatchCatalog::resource(const JobKey& key) const { return find_in(resources, key); }

Result<BatchResource> changed(const BatchCatalog& yard, const JobDefinition* last, ResourceChange how,
                              BatchResource changed) {
  return std::visit([&](auto& each) { return changed_one(yard, last, how, std::move(each)); }, changed);
}

void put(BatchCatalog& yard, ResourceChange how, const BatchResource& changed) {
  const auto place = [&](auto& map, const auto& each) {
    if (how == ResourceChange::remove)
      map.erase(each.key);
    else
      map.insert_or_assign(each.key, each);
  };
  if (const auto* environment = std::get_if<ComputeEnvironment>(&changed))
    place(yard.environments, *environment);
  if (const auto* queue = std::get_if<JobQueue>(&changed)) place(yard.queues, *queue);
  if (const auto* policy = std::get_if<SchedulingPolicy>(&changed)) place(yard.policies, *policy);
  if (const auto* service = std::get_if<ServiceEnvironment>(&changed))
    place(yard.service_environments, *service);
  if (const auto* share = std::get_if<QuotaShare>(&changed)) place(yard.quota_shares, *share);
  if (const auto* resource = std::get_if<ConsumableResource>(&changed)) place(yard.resources, *resource);
}

Result<void> check_fits_queue(const BatchCatalog& yard, const JobQueue& queue, const BatchPart& part) {
  const std::string& name = queue.key.name;
  if (!queue.enabled) return invalid("the job queue " + name + " is disabled and takes no jobs");
  if (part.service && !queue.service)
    return invalid("the job queue " + name +
                   " is not of the type SAGEMAKER_TRAINING and takes no service jobs");
  if (!part.service && queue.service)
    return invalid("the job queue " + name +
                   " is of the type SAGEMAKER_TRAINING and takes service jobs only");
  const SchedulingPolicy* policy = yard.policy_of(queue);
  const bool fair = policy && policy->kind == SchedulingPolicy::Kind::fair_share;
  const bool quotas = policy && policy->kind == SchedulingPolicy::Kind::quota_shares;
  if (fair && part.share.empty())
    return invalid("shareIdentifier is required: the job queue " + name +
                   " has a fair-share scheduling policy");
  if (!fair && !part.share.empty())
    return invalid("shareIdentifier is for job queues with a fair-share scheduling policy, and " + name +
                   " has none");
  if (quotas && part.quota_share.empty())
    return invalid("quotaShareName is required: the job queue " + name + " has quota shares");
  if (!quotas && !part.quota_share.empty())
    return invalid("quotaShareName is for job queues with a quota-share scheduling policy, and " + name +
                   " has none");
  if (quotas) {
    const QuotaShare* share = yard.quota_share({queue.key.region, quota_share_name(name, part.quota_share)});
    if (!share) return invalid("the quota share " + part.quota_share + " does not exist");
    if (!share->enabled)
      return invalid("the quota share " + part.quota_share + " is disabled and takes no jobs");
  }
  for (const Consumption& each : part.consumes)
    if (!yard.resource({queue.key.region, each.resource}))
      return invalid("the consumable resource " + each.resource + " does not exist");
  return {};
}

std::string batch_arn(const std::string& account, const std::string& region, std::string_view kind,
                      const std::string& name) {
  return "arn:aws:batch:" + region + ":" + account + ":" + std::string(kind) + "/" + name;
}

std::string_view name_in_arn(std::string_view text, std::string_view kind) {
  if (!text.starts_with("arn:")) return text;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || !text.substr(0, slash).ends_with(":" + std::string(kind)))
    return text;
  return text.substr(slash + 1);
}

std::string_view to_string(BatchStatus status) { return kStatuses[size_t(status)]; }

BatchStatus batch_status(const Job& job) {
  switch (job.state) {
    case JobState::waiting:
      if (!job.awaits.empty()) return BatchStatus::pending;
      return job.is_array() ? BatchStatus::submitted : BatchStatus::runnable;
    case JobState::active:
    case JobState::stopping:
      if (job.is_array()) return BatchStatus::pending;  // as long as children run
      return job.attempt() && job.attempt()->training_started ? BatchStatus::running : BatchStatus::starting;
    case JobState::completed:
      return BatchStatus::succeeded;
    case JobState::failed:
    case JobState::stopped:
      break;
  }
  return BatchStatus::failed;
}

BatchStatus node_status(const Job& job, HostIndex host) {
  CHECK(host < job.spec.hosts(), "the job has such a host");
  const Attempt* attempt = job.attempt();
  if (job.state == JobState::waiting || !attempt || host >= attempt->hosts.size()) return batch_status(job);
  const Host& own = attempt->hosts[host];
  // Of those that follow, how they end is of no account: they are stopped when the main host ends.
  switch (own.state) {
    case HostState::placed:
    case HostState::preparing:
    case HostState::downloading:
      return job.finished() ? BatchStatus::failed : BatchStatus::starting;
    case HostState::running:
    case HostState::draining:
    case HostState::uploading:
      return BatchStatus::running;
    case HostState::finished:
      if (job.spec.decides(host) && job.finished()) return batch_status(job);
      return own.stopped == StopCause::none || own.stopped == StopCause::main_ended ? BatchStatus::succeeded
                                                                                    : BatchStatus::failed;
    case HostState::failed:
    case HostState::lost:
      break;
  }
  return BatchStatus::failed;
}

namespace {

// Whom AWS would name by an instance's id is named by one that the machine's name makes: always the same.
std::string host_terminated(const std::string& machine) {
  const std::string id =
      machine.empty() ? "" : " i-" + to_hex(bytes_of(sha256(machine))).substr(0, kInstanceDigits);
  return "Host EC2 (instance" + id + ") terminated.";
}

std::string status_reason_of(Fault fault, const std::optional<int>& exit_code, const std::string& machine) {
  switch (fault) {
    case Fault::lost:
      return host_terminated(machine);
    case Fault::internal:
      if (exit_code) return "Task stopped by an internal error";
      [[fallthrough]];
    case Fault::client:
      return "Task failed to start";
    case Fault::algorithm:
      break;
  }
  return "Essential container in task exited";
}

// "" when nobody ended the job before its time.
std::string reason_of_stop(const Job& job) {
  if (job.withdrawn != Withdrawn::no) return job.withdrawn_reason;
  return job.stop_cause == StopCause::max_runtime ? "Job attempt duration exceeded timeout" : "";
}

}  // namespace

std::string node_status_reason(const Job& job, HostIndex host) {
  const Attempt* attempt = job.attempt();
  if (job.spec.decides(host) || !attempt || host >= attempt->hosts.size() || job.state == JobState::waiting)
    return batch_status_reason(job);
  const Host& own = attempt->hosts[host];
  if (own.stopped == StopCause::main_ended) return "Main node of the job has ended";
  if (!is_final(own.state)) {
    const bool waits = own.state < HostState::running;
    return waits ? "starts when the main node of the job runs" : "";
  }
  return status_reason_of(own.fault.value_or(Fault::algorithm), own.exit_code, own.machine);
}

std::vector<JobState> states_of(BatchStatus status) {
  switch (status) {
    case BatchStatus::submitted:
      return {};
    case BatchStatus::pending:
    case BatchStatus::runnable:
      return {JobState::waiting};
    case BatchStatus::starting:
    case BatchStatus::running:
      return {JobState::active, JobState::stopping};
    case BatchStatus::succeeded:
      return {JobState::completed};
    case BatchStatus::failed:
      break;
  }
  return {JobState::failed, JobState::stopped};
}

std::string container_reason(Fault fault, const std::string& failure) {
  if (fault != Fault::algorithm) return failure;
  return failure.starts_with("OutOfMemory") ? "OutOfMemoryError: Container killed due to memory usage" : "";
}

AttemptEnd end_of(const Job& job, const Attempt& attempt) {
  AttemptEnd end;
  end.exit_code = attempt.exit_code;
  const bool last = job.attempt() && job.attempt()->number == attempt.number;
  // What was done all the same was not taken away.
  if (attempt.interrupted && !(last && job.state == JobState::completed)) {
    end.status_reason = host_terminated(attempt.machine);
    end.reason = attempt.interruption;
    return end;
  }
  const Fault fault = attempt.fault.value_or(Fault::algorithm);
  end.status_reason = status_reason_of(fault, attempt.exit_code, attempt.machine);
  end.reason = container_reason(fault, attempt.failure);
  // Of one that was over before, somebody wrote down that another follows.
  const bool told_to_stop = job.stop_cause != StopCause::none && job.stop_cause != StopCause::host_failed;
  if (last && told_to_stop && attempt.interruption.empty())
    if (std::string reason = reason_of_stop(job); !reason.empty()) end.status_reason = std::move(reason);
  return end;
}

std::string batch_status_reason(const Job& job) {
  if (job.state == JobState::waiting && !job.wait_reason.empty()) return job.wait_reason;
  if (std::string reason = reason_of_stop(job); !reason.empty()) return reason;
  const Attempt* attempt = job.attempt();
  if (job.is_array() && job.state == JobState::failed) return "Array Child Job failed";
  if (!attempt || !attempt->ended) return "";
  return end_of(job, *attempt).status_reason;
}

std::map<std::string, std::string> batch_variables(const Job& job, const Attempt& attempt, HostIndex host) {
  CHECK(job.spec.batch, "only a Batch job has these");
  std::map<std::string, std::string> variables{{"AWS_BATCH_JOB_ID", job.key.name},
                                               {"AWS_BATCH_JQ_NAME", job.spec.batch->queue},
                                               {"AWS_BATCH_CE_NAME", attempt.environment},
                                               {"AWS_BATCH_JOB_ATTEMPT", std::to_string(attempt.number)}};
  if (job.parent != 0) {
    variables["AWS_BATCH_JOB_ARRAY_INDEX"] = std::to_string(array_index(job));
    variables["AWS_BATCH_JOB_ARRAY_SIZE"] = std::to_string(job.spec.batch->array_size);
  }
  if (const auto main = job.spec.main_host()) {
    variables["AWS_BATCH_JOB_NODE_INDEX"] = std::to_string(host);
    variables["AWS_BATCH_JOB_NUM_NODES"] = std::to_string(job.spec.hosts());
    variables["AWS_BATCH_JOB_MAIN_NODE_INDEX"] = std::to_string(*main);
  }
  return variables;
}

std::string_view kind_of(const BatchResource& changed) { return kKinds[changed.index()]; }

const JobKey& key_of(const BatchResource& changed) {
  return std::visit([](const auto& each) -> const JobKey& { return each.key; }, changed);
}

namespace {

Json to_json(const WaitLimit& limit) {
  return {{"seconds_max", limit.seconds_max}, {"terminate", limit.terminate}, {"reason", limit.reason}};
}
Result<WaitLimit> wait_limit_from_json(const Json& json) {
  WaitLimit limit;
  TRY(Fields(json, "wait_limit")
          .read("seconds_max", limit.seconds_max)
          .read("terminate", limit.terminate)
          .read("reason", limit.reason)
          .result());
  return limit;
}

Json to_json(const ComputeEnvironment& environment) {
  return {{"key", to_json(environment.key)},
          {"request", environment.request},
          {"enabled", environment.enabled},
          {"cpus_max", environment.cpus_max},
          {"cpus_min", environment.cpus_min},
          {"cpus_desired", environment.cpus_desired},
          {"instance_types", environment.instance_types},
          {"spot", environment.spot}};
}
Result<ComputeEnvironment> environment_from_json(const Json& json) {
  ComputeEnvironment changed;
  TRY(Fields(json, "compute_environment")
          .read("key", changed.key, job_key_from_json)
          .read("enabled", changed.enabled)
          .read("cpus_max", changed.cpus_max)
          .read("cpus_min", changed.cpus_min)
          .read("cpus_desired", changed.cpus_desired)
          .read("instance_types", changed.instance_types)
          .read("spot", changed.spot)
          .read("request", changed.request)
          .result());
  return changed;
}

Json to_json(const JobQueue& queue) {
  Json json{{"key", to_json(queue.key)},
            {"request", queue.request},
            {"enabled", queue.enabled},
            {"priority", queue.priority},
            {"environments", queue.environments}};
  if (queue.service) json["service"] = true;
  if (!queue.policy.empty()) json["policy"] = queue.policy;
  for (const WaitLimit& limit : queue.wait_limits) json["wait_limits"].push_back(to_json(limit));
  return json;
}
Result<JobQueue> queue_from_json(const Json& json) {
  JobQueue changed;
  TRY(Fields(json, "job_queue")
          .read("key", changed.key, job_key_from_json)
          .read("enabled", changed.enabled)
          .read("priority", changed.priority)
          .read("environments", changed.environments)
          .read("service", changed.service)
          .read("policy", changed.policy)
          .read("wait_limits", changed.wait_limits, wait_limit_from_json)
          .read("request", changed.request)
          .result());
  return changed;
}

Json to_json(const JobDefinition& definition) {
  return {{"key", to_json(definition.key)},
          {"request", definition.request},
          {"revision", definition.revision},
          {"active", definition.active}};
}
Result<JobDefinition> definition_from_json(const Json& json) {
  JobDefinition changed;
  TRY(Fields(json, "job_definition")
          .read("key", changed.key, job_key_from_json)
          .read("revision", changed.revision)
          .read("active", changed.active)
          .read("request", changed.request)
          .result());
  return changed;
}

template <class Resource, Result<Resource> (*read)(const Json&)>
Result<BatchResource> read_as(const Json& json) {
  return BatchResource(TRY(read(json)));
}

}  // namespace

Json to_json(const BatchResource& changed) {
  return std::visit([](const auto& each) { return to_json(each); }, changed);
}

Result<BatchResource> batch_resource_from_json(std::string_view kind, const Json& json) {
  static constexpr Result<BatchResource> (*kReaders[])(const Json&) = {
      read_as<ComputeEnvironment, environment_from_json>,
      read_as<JobQueue, queue_from_json>,
      read_as<JobDefinition, definition_from_json>,
      read_as<SchedulingPolicy, policy_from_json>,
      read_as<ServiceEnvironment, service_environment_from_json>,
      read_as<QuotaShare, quota_share_from_json>,
      read_as<ConsumableResource, consumable_from_json>};  // as kKinds
  static_assert(std::size(kReaders) == std::size(kKinds));
  for (size_t i = 0; i < std::size(kKinds); ++i)
    if (kKinds[i] == kind) return kReaders[i](json);
  return invalid("'" + shorten(kind, 40) + "' is no kind of Batch's");
}

}  // namespace trainyard::domain
