#include "domain/job.hpp"

#include <algorithm>
#include <limits>

#include "base/arithmetic.hpp"
#include "base/check.hpp"
#include "base/json_record.hpp"
#include "base/text.hpp"
#include "domain/channel_names.hpp"
#include "domain/json_forms.hpp"

namespace trainyard::domain {
namespace {

// The form of the options of jobs in queues, which are members of the spec.
struct QueuedForm {
  using Value = JobSpec;
  static Json write(const JobSpec& spec) { return queued_json(spec); }
  static Result<void> read_into(const Json& json, JobSpec& spec) { return read_queued(json, spec); }
};
constexpr QueuedForm kQueuedOptions;

constexpr auto kShare = json_record<Share>("share", [](auto& side, auto& share) {
  side("cpus", share.cpus);
  side("memory_bytes", share.memory_bytes);
  side("gpus", share.gpus);
});

constexpr auto kTag = json_record<Tag>("tag", [](auto& side, auto& tag) {
  side("key", tag.key);
  side("value", tag.value);
});

constexpr auto kJobKey = json_record<JobKey>("key", [](auto& side, auto& key) {
  side("region", key.region);
  side("name", key.name);
});

constexpr auto kFileSystem =
    json_record<FileSystemSource>("file_system", [](auto& side, auto& source) {
      side("id", source.id);
      side("type", source.type);
      side("path", source.path);
      side("writable", source.writable);
    });

constexpr auto kSyncedDirectory =
    json_record<SyncedDirectory>("synced_directory", [](auto& side, auto& directory) {
      side("uri", directory.uri);
      side("path", directory.path);
    });

constexpr auto kChannel = json_record<Channel>("channel", [](auto& side, auto& channel) {
  side("name", channel.name);
  side("content_type", channel.content_type);
  side("input_mode", channel.input_mode, kInputModes);
  side("compression", channel.compression);
  side("record_wrapper", channel.record_wrapper);
  side("s3_data_type", channel.s3_data_type);
  side("s3_uri", channel.s3_uri);
  side("distribution", channel.distribution, kDistributions);
  side.if_set("attribute_names", channel.attribute_names);
  side.if_set("groups", channel.groups);
  side.if_set("shuffle_seed", channel.shuffle_seed);
  side.if_set("file_system", channel.file_system, kFileSystem);
});

constexpr auto kMetric = json_record<MetricDefinition>("metric", [](auto& side, auto& metric) {
  side("name", metric.name);
  side("regex", metric.regex);
});

constexpr auto kGroup = json_record<InstanceGroup>("group", [](auto& side, auto& group) {
  side("name", group.name);
  side("instance_type", group.instance_type);
  side("count", group.count);
  side.if_set("share", group.share, kShare);
  side.if_set("program", group.program, program_from_json);
  side.if_set("fittings", group.container_options, container_options_from_json);
});

// The form {"placed": 1763631900000, "running": 1763631901500}. It is short, because a gang may
// have thousands of hosts and is written with each fact.
struct HostStepsForm {
  using Value = std::vector<HostStep>;
  static Json write(const Value& steps) {
    Json json = Json::object();
    for (const HostStep& step : steps)
      json[std::string(to_string(step.state))] = to_milliseconds(step.at);
    return json;
  }
  static Result<void> read_into(const Json& json, Value& steps) {
    if (!json.is_object()) return invalid("host.steps must be an object");
    steps.clear();
    for (const auto& [name, at] : json.items()) {
      if (!at.is_number_integer())
        return invalid("host.steps." + shorten(name, 60) + " must be a whole number");
      steps.push_back({TRY(parse_host_state(name)), from_milliseconds(at.get<int64_t>())});
    }
    std::ranges::sort(steps, {}, &HostStep::state);  // order in which a host reaches its states
    return {};
  }
};
constexpr HostStepsForm kHostSteps;

constexpr auto kHost = json_record<Host>("host", [](auto& side, auto& host) {
  side("state", host.state, parse_host_state);
  side("machine", host.machine);
  side("share", host.share, kShare);
  side("facts_applied", host.facts_applied);
  side.if_set("exit_code", host.exit_code);
  side.if_set("failure", host.failure);
  side.if_set("fault", host.fault, parse_fault);
  side.if_set("staged_model", host.staged_model);
  side.if_set("address", host.address);
  side.if_set("stopped", host.stopped, parse_stop_cause);
  side("state_since", host.state_since);
  side.if_set("steps", host.steps, kHostSteps);
});

constexpr auto kAttempt = json_record<Attempt>("attempt", [](auto& side, auto& attempt) {
  side("number", attempt.number);
  side("token", attempt.token);
  side("state", attempt.state, parse_attempt_state);
  side("hosts", attempt.hosts, kHost);
  side.if_set("first_failed", attempt.first_failed);
  side.if_set("interruption", attempt.interruption);
  side.if_set("interrupted", attempt.interrupted);
  side.when(attempt.interrupted.has_value(), "notice", attempt.notice);
  side.when(attempt.interrupted && attempt.preempted, "preempted", attempt.preempted);
  side.if_set("warm_pool", attempt.warm_pool);
  side.if_set("environment", attempt.environment);
  side.if_set("spot", attempt.spot);
  side.if_set("mutual_tls", attempt.mutual_tls);
  side.if_set("exit_code", attempt.exit_code);
  side.if_set("failure", attempt.failure);
  side.if_set("fault", attempt.fault, parse_fault);
  side.if_set("machine", attempt.machine);
  side("started", attempt.started);
  side("training_started", attempt.training_started);
  side("ended", attempt.ended);
});

constexpr auto kWarmPool = json_record<WarmPool>(
    "warm_pool",
    [](auto& side, auto& pool) {
      side("state", pool.state, parse_warm_pool_state);
      side("keep_alive_seconds", pool.keep_alive_seconds);
      side("available", pool.available);
      side("ended", pool.ended);
      side.if_set("reused_by", pool.reused_by);
    },
    [](const WarmPool& pool) -> Result<void> {
      if (pool.state == WarmPoolState::available && !pool.available)
        return invalid("warm_pool.available must say since when");
      return {};
    });

constexpr auto kTransition =
    json_record<Transition>("transition", [](auto& side, auto& transition) {
      side("phase", transition.phase, parse_phase);
      side("message", transition.message);
      side("start", transition.start);
      side("end", transition.end);
    });

constexpr auto kSpec = json_record<JobSpec>(
    "spec",
    [](auto& side, auto& spec) {
      side("image", spec.image);
      side("entrypoint", spec.entrypoint);
      side("arguments", spec.arguments);
      side("environment", spec.environment);
      side("hyperparameters", spec.hyperparameters);
      side("channels", spec.channels, kChannel);
      side("metrics", spec.metrics, kMetric);
      side("groups", spec.groups, kGroup);
      side.if_set("preferences", spec.preferences, kGroup);
      side("volume_gib", spec.volume_gib);
      side.if_set("principal", spec.principal);
      side("role_arn", spec.role_arn);
      side("output_uri", spec.output_uri);
      side("output_kms_key", spec.output_kms_key);
      side("compress_model", spec.compress_model);
      side("max_runtime_seconds", spec.max_runtime_seconds);
      side("spot", spec.spot);
      side.if_set("max_wait_seconds", spec.max_wait_seconds);
      side.if_set("max_pending_seconds", spec.max_pending_seconds);
      side("retries_max", spec.retries_max);
      side.if_set("checkpoint", spec.checkpoint, kSyncedDirectory);
      side.if_set("tensorboard", spec.tensorboard, kSyncedDirectory);
      side("keep_alive_seconds", spec.keep_alive_seconds);
      side("network_isolation", spec.network_isolation);
      side("encrypt_traffic", spec.encrypt_traffic);
      side.if_set("notes", spec.notes);
      side("request", spec.request);
      side.when(spec.queue.has_value(), "batch", spec, kQueuedOptions);
    },
    [](const JobSpec& spec) -> Result<void> {
      if (spec.groups.empty()) return invalid("spec.groups must name at least one instance group");
      return {};
    });

// The whole job except its spec.
constexpr auto kProgress = json_record<Job>("job", [](auto& side, auto& job) {
  side("number", job.number);
  side("key", job.key, kJobKey);
  side("account", job.account);
  side("state", job.state, parse_job_state);
  side("created", job.created);
  side("modified", job.modified);
  side("transitions", job.transitions, kTransition);
  side("wait_reason", job.wait_reason);
  side("note", job.note);
  side("stop_requested", job.stop_requested);
  side("stop_cause", job.stop_cause, parse_stop_cause);
  side.if_set("stop_grace", job.stop_grace);
  side.if_set("withdrawn", job.cancellation, parse_cancellation);
  side.when(job.cancellation != Cancellation::no, "withdrawn_reason", job.cancellation_reason);
  side.if_set("awaits", job.awaits, kJobNumberForm);
  side.if_set("new_priority", job.new_priority);
  side.if_set("selected", job.selected);
  side.if_set("parent", job.parent);
  side.if_set("children_made", job.children_made);
  side.if_set("awaits_alike", job.awaits_alike, kJobNumberForm);
  side("attempts", job.attempts, kAttempt);
  side("failure_reason", job.failure_reason);
  side("model_uri", job.model_uri);
  side("output_uri", job.output_uri);
  side("training_start", job.training_start);
  side("training_end", job.training_end);
  side.if_set("warm_pool", job.warm_pool, kWarmPool);
  side.if_set("clock_offset", job.clock_offset);
});

constexpr auto kSpecOfJob =
    json_record<Job>("job", [](auto& side, auto& job) { side("spec", job.spec, kSpec); });

}  // namespace

Result<AttemptId> parse_attempt_id(std::string_view text) {
  const auto bad = [&] {
    return invalid("'" + shorten(text, 60) + "' is not an attempt, like j17a1");
  };
  const size_t middle = text.find('a');
  if (!text.starts_with('j') || middle == std::string_view::npos) return bad();
  const auto job = parse_int(text.substr(1, middle - 1));
  const auto number = parse_int(text.substr(middle + 1));
  if (!job || !number || *job < 1 || *number < 1 || *number > std::numeric_limits<uint32_t>::max())
    return bad();
  const AttemptId id{JobNumber(*job), uint32_t(*number)};
  if (id.text() != text) return bad();  // rejects "j017a1": each attempt has one id
  return id;
}

void Host::reach(HostState next, Instant at) {
  state = next;
  state_since = at;
  steps.push_back({next, at});
}

// The sum saturates, because counts in a ledger of an earlier version may exceed the limits.
uint32_t JobSpec::hosts() const {
  uint32_t sum = 0;
  for (const InstanceGroup& group : groups) sum = saturating_add(sum, group.count);
  return sum;
}

const InstanceGroup& JobSpec::group(HostIndex host) const {
  for (const InstanceGroup& group : groups) {
    if (host < group.count) return group;
    host -= group.count;
  }
  CHECK(!groups.empty(), "a job has at least one group");
  return groups.back();
}

std::optional<HostIndex> JobSpec::main_host() const { return main_node; }

std::string tensorboard_uri(std::string output_path, std::string_view job_name) {
  while (output_path.ends_with('/')) output_path.pop_back();
  return output_path.append("/").append(job_name).append("/tensorboard-output");
}

std::string JobSpec::listed_queue() const {
  if (!queue) return "";
  return contract == Contract::training ? std::string(kTrainingQueues) + queue->name : queue->name;
}

bool JobSpec::decides(HostIndex host) const { return !main_host() || *main_host() == host; }

Duration Attempt::ran(Instant now) const {
  if (!training_started) return {};
  return std::max(Duration{}, ended.value_or(now) - *training_started);
}

Duration Job::ran(Instant now) const {
  Duration sum{};
  for (const Attempt& attempt : attempts) sum += attempt.ran(now);
  return sum;
}

Duration Job::ran_of_max(Instant now) const {
  if (!spec.queue) return ran(now);
  return attempt() ? attempt()->ran(now) : Duration{};
}

void Job::use_selected() {
  if (selected && *selected < spec.preferences.size()) spec.groups = {spec.preferences[*selected]};
}

const Job* find_job(const std::vector<std::shared_ptr<const Job>>& jobs, JobNumber number) {
  const auto job =
      std::ranges::lower_bound(jobs, number, {}, [](const auto& each) { return each->number; });
  return job != jobs.end() && (*job)->number == number ? job->get() : nullptr;
}

bool same_hosts(const JobSpec& kept, const JobSpec& next) {
  const auto requested = [](const JobSpec& spec, const char* outer, const char* inner) {
    const auto found = spec.request.find(outer);
    if (found == spec.request.end() || (inner && !found->is_object())) return Json();
    return inner ? found->value(inner, Json()) : *found;
  };
  const bool same_groups =
      std::equal(kept.groups.begin(), kept.groups.end(), next.groups.begin(), next.groups.end(),
                 [](const InstanceGroup& a, const InstanceGroup& b) {
                   return a.instance_type == b.instance_type && a.count == b.count;
                 });
  return same_groups && kept.role_arn == next.role_arn && kept.volume_gib == next.volume_gib &&
         kept.network_isolation == next.network_isolation &&
         kept.encrypt_traffic == next.encrypt_traffic &&
         requested(kept, "VpcConfig", nullptr) == requested(next, "VpcConfig", nullptr) &&
         requested(kept, "ResourceConfig", "VolumeKmsKeyId") ==
             requested(next, "ResourceConfig", "VolumeKmsKeyId");
}

bool Channel::is_of(const std::string& group) const {
  return groups.empty() || std::find(groups.begin(), groups.end(), group) != groups.end();
}

Result<JobNumber> job_number_from_json(const Json& json) {
  JobNumber number = 0;
  TRY(kJobNumberForm.read_into(json, number));
  return number;
}

Json to_json(const Share& share) { return kShare.write(share); }
Json to_json(const Tag& tag) { return kTag.write(tag); }
Json to_json(const JobKey& key) { return kJobKey.write(key); }
Json to_json(const JobSpec& spec) { return kSpec.write(spec); }
Json progress_json(const Job& job) { return kProgress.write(job); }
Json to_json(const Job& job) {
  Json json = kProgress.write(job);
  json["spec"] = kSpec.write(job.spec);
  return json;
}

Result<Share> share_from_json(const Json& json) { return kShare.read(json); }
Result<Tag> tag_from_json(const Json& json) { return kTag.read(json); }
Result<JobKey> job_key_from_json(const Json& json) { return kJobKey.read(json); }
Result<JobSpec> job_spec_from_json(const Json& json) { return kSpec.read(json); }
Result<Job> job_from_json(const Json& json) {
  Job job = TRY(kProgress.read(json));
  TRY(kSpecOfJob.read_into(json, job));
  job.use_selected();
  return job;
}

}  // namespace trainyard::domain
