#include "domain/batch.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::domain {
namespace {

constexpr std::string_view kKinds[] = {"compute_environment", "job_queue", "job_definition"};  // as BatchNoun
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
    if (key.region == noun.key.region &&
        std::ranges::find(queue.environments, noun.key.name) != queue.environments.end())
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return BatchNoun(*present);
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
    return BatchNoun(*present);
  }
  for (const std::string& name : noun.environments)
    if (!yard.environment({noun.key.region, name}))
      return not_found("the compute environment " + name + " does not exist");
  return BatchNoun(std::move(noun));
}

Result<BatchNoun> changed_one(const BatchYard&, const JobDefinition* last, NounChange how,
                              JobDefinition noun) {
  if (how == NounChange::create) noun.revision = last ? last->revision + 1 : 1;
  return BatchNoun(std::move(noun));
}

}  // namespace

const ComputeEnvironment* BatchYard::environment(const JobKey& key) const {
  const auto found = environments.find(key);
  return found == environments.end() ? nullptr : &found->second;
}

const JobQueue* BatchYard::queue(const JobKey& key) const {
  const auto found = queues.find(key);
  return found == queues.end() ? nullptr : &found->second;
}

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
      return job.awaits.empty() ? BatchStatus::runnable : BatchStatus::pending;
    case JobState::active:
    case JobState::stopping:
      return job.attempt() && job.attempt()->training_started ? BatchStatus::running : BatchStatus::starting;
    case JobState::completed:
      return BatchStatus::succeeded;
    case JobState::failed:
    case JobState::stopped:
      break;
  }
  return BatchStatus::failed;
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

AttemptEnd end_of(const Attempt& attempt) {
  AttemptEnd end;
  end.exit_code = attempt.exit_code;
  const Fault fault = attempt.fault.value_or(Fault::algorithm);
  if (fault == Fault::internal) {
    end.status_reason = "Host EC2 (instance) terminated.";
    end.reason = attempt.failure;
  } else if (fault == Fault::client) {
    end.status_reason = "Task failed to start";
    end.reason = attempt.failure;
  } else {
    end.status_reason = "Essential container in task exited";
    if (attempt.failure.starts_with("OutOfMemory"))
      end.reason = "OutOfMemoryError: Container killed due to memory usage";
  }
  return end;
}

std::string batch_status_reason(const Job& job) {
  if (job.state == JobState::waiting && !job.wait_reason.empty()) return job.wait_reason;
  if (job.withdrawn != Withdrawn::no) return job.withdrawn_reason;
  if (job.stop_cause == StopCause::max_runtime) return "Job attempt duration exceeded timeout";
  const Attempt* attempt = job.attempt();
  if (!attempt || !attempt->ended) return "";
  return end_of(*attempt).status_reason;
}

std::map<std::string, std::string> batch_variables(const Job& job, const Attempt& attempt) {
  CHECK(job.spec.batch, "only a Batch job has these");
  return {{"AWS_BATCH_JOB_ID", job.key.name},
          {"AWS_BATCH_JQ_NAME", job.spec.batch->queue},
          {"AWS_BATCH_CE_NAME", attempt.environment},
          {"AWS_BATCH_JOB_ATTEMPT", std::to_string(attempt.number)}};
}

std::string_view kind_of(const BatchNoun& noun) { return kKinds[noun.index()]; }

const JobKey& key_of(const BatchNoun& noun) {
  return std::visit([](const auto& each) -> const JobKey& { return each.key; }, noun);
}

Json to_json(const BatchNoun& noun) {
  Json json = std::visit(
      [](const auto& each) {
        return Json{{"key", to_json(each.key)}, {"request", each.request}};
      },
      noun);
  if (const auto* environment = std::get_if<ComputeEnvironment>(&noun)) {
    json["enabled"] = environment->enabled;
    json["cpus_max"] = environment->cpus_max;
  } else if (const auto* queue = std::get_if<JobQueue>(&noun)) {
    json["enabled"] = queue->enabled;
    json["priority"] = queue->priority;
    json["environments"] = queue->environments;
  } else {
    const auto& definition = std::get<JobDefinition>(noun);
    json["revision"] = definition.revision;
    json["active"] = definition.active;
  }
  return json;
}

Result<BatchNoun> batch_noun_from_json(std::string_view kind, const Json& json) {
  if (kind == kKinds[0]) {
    ComputeEnvironment noun;
    TRY(Fields(json, kind)
            .read("key", noun.key, job_key_from_json)
            .read("enabled", noun.enabled)
            .read("cpus_max", noun.cpus_max)
            .read("request", noun.request)
            .result());
    return BatchNoun(std::move(noun));
  }
  if (kind == kKinds[1]) {
    JobQueue noun;
    TRY(Fields(json, kind)
            .read("key", noun.key, job_key_from_json)
            .read("enabled", noun.enabled)
            .read("priority", noun.priority)
            .read("environments", noun.environments)
            .read("request", noun.request)
            .result());
    return BatchNoun(std::move(noun));
  }
  if (kind != kKinds[2]) return invalid("'" + shorten(kind, 40) + "' is no kind of Batch's");
  JobDefinition noun;
  TRY(Fields(json, kind)
          .read("key", noun.key, job_key_from_json)
          .read("revision", noun.revision)
          .read("active", noun.active)
          .read("request", noun.request)
          .result());
  return BatchNoun(std::move(noun));
}

}  // namespace trainyard::domain
