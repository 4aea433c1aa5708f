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
                                       "consumable_resource"};  // as BatchNoun
static_assert(std::size(kKinds) == std::variant_size_v<BatchNoun>);
constexpr size_t kInstanceDigits = 17;  // of an instance's id, as AWS
constexpr std::string_view kStatuses[] = {"SUBMITTED", "PENDING",   "RUNNABLE", "STARTING",
                                          "RUNNING",   "SUCCEEDED", "FAILED"};  // as BatchStatus

template <class Map>
size_t count_in(const Map& map, const std::string& region) {
  return size_t(std::ranges::count_if(map, [&](const auto& each) { return each.first.region == region; }));
}

Result<BatchNoun> changed_one(const BatchYard& yard, const JobDefinition*, NounChange how,
                              ComputeEnvironment noun) {
  const ComputeEnvironment* present = yard.environment(noun.key);
  if (how == NounChange::create) {
    if (present) return conflict("Object already exists");
    if (count_in(yard.environments, noun.key.region) >= kEnvironmentsMax)
      return invalid("a region has at most " + std::to_string(kEnvironmentsMax) + " compute environments");
    return BatchNoun(std::move(noun));
  }
  if (!present) return not_found("the compute environment " + noun.key.name + " does not exist");
  if (how == NounChange::update) return BatchNoun(std::move(noun));
  if (present->enabled) return conflict("Cannot delete, resource must be disabled: " + noun.key.name);
  for (const auto& [key, queue] : yard.queues)
    if (key.region == noun.key.region && !queue.service &&
        std::ranges::find(queue.environments, noun.key.name) != queue.environments.end())
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return BatchNoun(*present);
}

// A queue's policy may be replaced by another one of its kind, and neither added nor taken away.
Result<void> check_same_policy(const BatchYard& yard, const JobQueue& present, const JobQueue& next) {
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

Result<BatchNoun> changed_one(const BatchYard& yard, const JobDefinition*, NounChange how, JobQueue noun) {
  const JobQueue* present = yard.queue(noun.key);
  if (how == NounChange::create && present) return conflict("Object already exists");
  if (how != NounChange::create && !present)
    return not_found("the job queue " + noun.key.name + " does not exist");
  if (how == NounChange::create && count_in(yard.queues, noun.key.region) >= kQueuesMax)
    return invalid("a region has at most " + std::to_string(kQueuesMax) + " job queues");
  if (how == NounChange::remove) {
    if (present->enabled) return conflict("Cannot delete, resource must be disabled: " + noun.key.name);
    for (const auto& [key, share] : yard.quota_shares)
      if (key.region == noun.key.region && share.queue() == noun.key.name)
        return conflict("Cannot delete, found existing QuotaShare relationship: " + share.name());
    return BatchNoun(*present);
  }
  for (const std::string& name : noun.environments)
    if (noun.service ? !yard.service_environment({noun.key.region, name})
                     : !yard.environment({noun.key.region, name}))
      return not_found((noun.service ? "the service environment " : "the compute environment ") + name +
                       " does not exist");
  if (!noun.policy.empty() && !yard.policy_of(noun))
    return not_found("the scheduling policy " + noun.policy + " does not exist");
  if (!noun.service && yard.policy_of(noun) &&
      yard.policy_of(noun)->kind == SchedulingPolicy::Kind::quota_shares)
    return invalid("quota shares are for job queues of the type SAGEMAKER_TRAINING: " + noun.key.name);
  if (how == NounChange::update) TRY(check_same_policy(yard, *present, noun));
  return BatchNoun(std::move(noun));
}

Result<BatchNoun> changed_one(const BatchYard&, const JobDefinition* last, NounChange how,
                              JobDefinition noun) {
  if (how == NounChange::create) noun.revision = last ? last->revision + 1 : 1;
  return BatchNoun(std::move(noun));
}

// What is the same for all of these: names are taken once, what is not there is not changed, and a region has so many.
template <class Noun>
Result<void> check_presence(const std::map<JobKey, Noun>& all, NounChange how, const JobKey& key,
                            const std::string& what, size_t most) {
  const bool present = all.contains(key);
  if (how != NounChange::create)
    return present ? Result<void>() : not_found("the " + what + " " + key.name + " does not exist");
  if (present) return conflict("Object already exists");
  if (count_in(all, key.region) >= most)
    return invalid("a region has at most " + std::to_string(most) + " of what this is: " + what);
  return {};
}

Result<BatchNoun> changed_one(const BatchYard& yard, const JobDefinition*, NounChange how,
                              SchedulingPolicy noun) {
  TRY(check_presence(yard.policies, how, noun.key, "scheduling policy", kPoliciesMax));
  if (how == NounChange::update && yard.policies.at(noun.key).kind != noun.kind)
    return invalid("a fairsharePolicy cannot become a quotaSharePolicy, nor the reverse: " + noun.key.name);
  if (how != NounChange::remove) return BatchNoun(std::move(noun));
  for (const auto& [key, queue] : yard.queues)
    if (key.region == noun.key.region && queue.policy == noun.key.name)
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return BatchNoun(yard.policies.at(noun.key));
}

Result<BatchNoun> changed_one(const BatchYard& yard, const JobDefinition*, NounChange how,
                              ServiceEnvironment noun) {
  TRY(check_presence(yard.service_environments, how, noun.key, "service environment",
                     kServiceEnvironmentsMax));
  if (how != NounChange::remove) return BatchNoun(std::move(noun));
  const ServiceEnvironment& present = yard.service_environments.at(noun.key);
  if (present.enabled) return conflict("Cannot delete, resource must be disabled: " + noun.key.name);
  for (const auto& [key, queue] : yard.queues)
    if (key.region == noun.key.region && queue.service &&
        std::ranges::find(queue.environments, noun.key.name) != queue.environments.end())
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return BatchNoun(present);
}

Result<BatchNoun> changed_one(const BatchYard& yard, const JobDefinition*, NounChange how, QuotaShare noun) {
  const JobQueue* queue = yard.queue({noun.key.region, noun.queue()});
  if (!queue) return not_found("the job queue " + noun.queue() + " does not exist");
  const SchedulingPolicy* policy = yard.policy_of(*queue);
  if (!policy || policy->kind != SchedulingPolicy::Kind::quota_shares)
    return invalid("the job queue " + noun.queue() + " has no scheduling policy with a quotaSharePolicy");
  const auto of_queue = std::ranges::count_if(yard.quota_shares, [&](const auto& each) {
    return each.first.region == noun.key.region && each.second.queue() == noun.queue();
  });
  if (how == NounChange::create && !yard.quota_share(noun.key) && size_t(of_queue) >= kQuotaSharesOfQueueMax)
    return invalid("a job queue has at most " + std::to_string(kQuotaSharesOfQueueMax) + " quota shares");
  TRY(check_presence(yard.quota_shares, how, noun.key, "quota share", kQueuesMax * kQuotaSharesOfQueueMax));
  if (how != NounChange::remove) return BatchNoun(std::move(noun));
  const QuotaShare& present = yard.quota_shares.at(noun.key);
  if (present.enabled) return conflict("Cannot delete, resource must be disabled: " + noun.key.name);
  return BatchNoun(present);
}

Result<BatchNoun> changed_one(const BatchYard& yard, const JobDefinition*, NounChange how,
                              ConsumableResource noun) {
  TRY(check_presence(yard.resources, how, noun.key, "consumable resource", kConsumableResourcesMax));
  if (how != NounChange::remove && (noun.total < 0 || noun.total > kCountedMax))
    return invalid("the total quantity of " + noun.key.name + " must be between 0 and " +
                   std::to_string(kCountedMax) + ", not " + std::to_string(noun.total));
  if (how == NounChange::create) return BatchNoun(std::move(noun));
  const ConsumableResource& present = yard.resources.at(noun.key);
  if (how == NounChange::remove) return BatchNoun(present);
  return BatchNoun(TRY(updated(present, noun)));
}

template <class Noun>
const Noun* find_in(const std::map<JobKey, Noun>& all, const JobKey& key) {
  const auto found = all.find(key);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

const ComputeEnvironment* BatchYard::environment(const JobKey& key) const {
  return find_in(environments, key);
}
const JobQueue* BatchYard::queue(const JobKey& key) const { return find_in(queues, key); }
const SchedulingPolicy* BatchYard::policy_of(const JobQueue& queue) const {
  return queue.policy.empty() ? nullptr : find_in(policies, JobKey{queue.key.region, queue.policy});
}
const ServiceEnvironment* BatchYard::service_environment(const JobKey& key) const {
  return find_in(service_environments, key);
}
const QuotaShare* BatchYard::quota_share(const JobKey& key) const { return find_in(quota_shares, key); }
const ConsumableResource* BatchYard::resource(const JobKey& key) const { return find_in(resources, key); }

Result<BatchNoun> changed(const BatchYard& yard, const JobDefinition* last, NounChange how, BatchNoun noun) {
  return std::visit([&](auto& each) { return changed_one(yard, last, how, std::move(each)); }, noun);
}

void put(BatchYard& yard, NounChange how, const BatchNoun& noun) {
  const auto place = [&](auto& map, const auto& each) {
    if (how == NounChange::remove)
      map.erase(each.key);
    else
      map.insert_or_assign(each.key, each);
  };
  if (const auto* environment = std::get_if<ComputeEnvironment>(&noun))
    place(yard.environments, *environment);
  if (const auto* queue = std::get_if<JobQueue>(&noun)) place(yard.queues, *queue);
  if (const auto* policy = std::get_if<SchedulingPolicy>(&noun)) place(yard.policies, *policy);
  if (const auto* service = std::get_if<ServiceEnvironment>(&noun))
    place(yard.service_environments, *service);
  if (const auto* share = std::get_if<QuotaShare>(&noun)) place(yard.quota_shares, *share);
  if (const auto* resource = std::get_if<ConsumableResource>(&noun)) place(yard.resources, *resource);
}

Result<void> check_fits_queue(const BatchYard& yard, const JobQueue& queue, const BatchPart& part) {
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

std::string_view kind_of(const BatchNoun& noun) { return kKinds[noun.index()]; }

const JobKey& key_of(const BatchNoun& noun) {
  return std::visit([](const auto& each) -> const JobKey& { return each.key; }, noun);
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
  ComputeEnvironment noun;
  TRY(Fields(json, "compute_environment")
          .read("key", noun.key, job_key_from_json)
          .read("enabled", noun.enabled)
          .read("cpus_max", noun.cpus_max)
          .read("cpus_min", noun.cpus_min)
          .read("cpus_desired", noun.cpus_desired)
          .read("instance_types", noun.instance_types)
          .read("spot", noun.spot)
          .read("request", noun.request)
          .result());
  return noun;
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
  JobQueue noun;
  TRY(Fields(json, "job_queue")
          .read("key", noun.key, job_key_from_json)
          .read("enabled", noun.enabled)
          .read("priority", noun.priority)
          .read("environments", noun.environments)
          .read("service", noun.service)
          .read("policy", noun.policy)
          .read("wait_limits", noun.wait_limits, wait_limit_from_json)
          .read("request", noun.request)
          .result());
  return noun;
}

Json to_json(const JobDefinition& definition) {
  return {{"key", to_json(definition.key)},
          {"request", definition.request},
          {"revision", definition.revision},
          {"active", definition.active}};
}
Result<JobDefinition> definition_from_json(const Json& json) {
  JobDefinition noun;
  TRY(Fields(json, "job_definition")
          .read("key", noun.key, job_key_from_json)
          .read("revision", noun.revision)
          .read("active", noun.active)
          .read("request", noun.request)
          .result());
  return noun;
}

template <class Noun, Result<Noun> (*read)(const Json&)>
Result<BatchNoun> read_as(const Json& json) {
  return BatchNoun(TRY(read(json)));
}

}  // namespace

Json to_json(const BatchNoun& noun) {
  return std::visit([](const auto& each) { return to_json(each); }, noun);
}

Result<BatchNoun> batch_noun_from_json(std::string_view kind, const Json& json) {
  static constexpr Result<BatchNoun> (*kReaders[])(const Json&) = {
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
