#include "domain/job.hpp"

#include <algorithm>
#include <limits>

#include "base/arithmetic.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::domain {
namespace {

std::string_view to_string(InputMode mode) {
  switch (mode) {
    case InputMode::file:
      return "File";
    case InputMode::pipe:
      return "Pipe";
    case InputMode::fast_file:
      return "FastFile";
  }
  return "File";
}

Result<InputMode> parse_input_mode(std::string_view text) {
  for (const InputMode mode : {InputMode::file, InputMode::pipe, InputMode::fast_file})
    if (to_string(mode) == text) return mode;
  return invalid("'" + shorten(text, 60) + "' is not an input mode");
}

std::string_view to_string(Distribution distribution) {
  return distribution == Distribution::sharded_by_s3_key ? "ShardedByS3Key" : "FullyReplicated";
}

Result<Distribution> parse_distribution(std::string_view text) {
  for (const Distribution each : {Distribution::fully_replicated, Distribution::sharded_by_s3_key})
    if (to_string(each) == text) return each;
  return invalid("'" + shorten(text, 60) + "' is not a distribution");
}

Json to_json(const Channel&);
Json to_json(const MetricDefinition&);
Json to_json(const InstanceGroup&);
Json to_json(const Host&);
Json to_json(const Attempt&);
Json to_json(const Transition&);

template <class T>
Json list_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

Json to_json(const FileSystemSource& source) {
  return {{"id", source.id}, {"type", source.type}, {"path", source.path}, {"writable", source.writable}};
}

Result<FileSystemSource> file_system_from_json(const Json& json) {
  FileSystemSource source;
  Fields fields(json, "file_system");
  fields.read("id", source.id)
      .read("type", source.type)
      .read("path", source.path)
      .read("writable", source.writable);
  TRY(fields.result());
  return source;
}

Json to_json(const Checkpoint& checkpoint) { return {{"uri", checkpoint.uri}, {"path", checkpoint.path}}; }

Result<Checkpoint> checkpoint_from_json(const Json& json) {
  Checkpoint checkpoint;
  TRY(Fields(json, "checkpoint").read("uri", checkpoint.uri).read("path", checkpoint.path).result());
  return checkpoint;
}

Json to_json(const Channel& channel) {
  Json json{{"name", channel.name},
            {"content_type", channel.content_type},
            {"input_mode", to_string(channel.input_mode)},
            {"compression", channel.compression},
            {"record_wrapper", channel.record_wrapper},
            {"s3_data_type", channel.s3_data_type},
            {"s3_uri", channel.s3_uri},
            {"distribution", to_string(channel.distribution)}};
  if (!channel.attribute_names.empty()) json["attribute_names"] = channel.attribute_names;
  if (!channel.groups.empty()) json["groups"] = channel.groups;
  if (channel.shuffle_seed) json["shuffle_seed"] = *channel.shuffle_seed;
  if (channel.file_system) json["file_system"] = to_json(*channel.file_system);
  return json;
}

Result<Channel> channel_from_json(const Json& json) {
  Channel channel;
  Fields fields(json, "channel");
  fields.read("name", channel.name)
      .read("content_type", channel.content_type)
      .read("input_mode", channel.input_mode, parse_input_mode)
      .read("compression", channel.compression)
      .read("record_wrapper", channel.record_wrapper)
      .read("s3_data_type", channel.s3_data_type)
      .read("s3_uri", channel.s3_uri)
      .read("distribution", channel.distribution, parse_distribution)
      .read("attribute_names", channel.attribute_names)
      .read("groups", channel.groups)
      .read("shuffle_seed", channel.shuffle_seed)
      .read("file_system", channel.file_system, file_system_from_json);
  TRY(fields.result());
  return channel;
}

Json to_json(const MetricDefinition& metric) { return {{"name", metric.name}, {"regex", metric.regex}}; }

Result<MetricDefinition> metric_from_json(const Json& json) {
  MetricDefinition metric;
  TRY(Fields(json, "metric").read("name", metric.name).read("regex", metric.regex).result());
  return metric;
}

Json to_json(const InstanceGroup& group) {
  Json json{{"name", group.name}, {"instance_type", group.instance_type}, {"count", group.count}};
  if (group.share) json["share"] = to_json(*group.share);
  if (group.program) json["program"] = to_json(*group.program);
  if (Json container_options = to_json(group.container_options); !container_options.empty())
    json["fittings"] = std::move(container_options);
  return json;
}

Result<InstanceGroup> group_from_json(const Json& json) {
  InstanceGroup group;
  Fields fields(json, "group");
  fields.read("name", group.name)
      .read("instance_type", group.instance_type)
      .read("count", group.count)
      .read("share", group.share, share_from_json)
      .read("program", group.program, program_from_json)
      .read("fittings", group.container_options, container_options_from_json);
  TRY(fields.result());
  return group;
}

Json to_json(const Host& host) {
  Json json{{"state", to_string(host.state)},
            {"machine", host.machine},
            {"share", to_json(host.share)},
            {"facts_applied", host.facts_applied},
            {"state_since", instant_json(host.state_since)}};
  if (host.exit_code) json["exit_code"] = *host.exit_code;
  if (!host.failure.empty()) json["failure"] = host.failure;
  if (host.fault) json["fault"] = to_string(*host.fault);
  if (!host.staged_model.empty()) json["staged_model"] = host.staged_model;
  if (!host.address.empty()) json["address"] = host.address;
  if (host.stopped != StopCause::none) json["stopped"] = to_string(host.stopped);
  return json;
}

Result<Host> host_from_json(const Json& json) {
  Host host;
  Fields fields(json, "host");
  fields.read("state", host.state, parse_host_state)
      .read("machine", host.machine)
      .read("share", host.share, share_from_json)
      .read("facts_applied", host.facts_applied)
      .read("exit_code", host.exit_code)
      .read("failure", host.failure)
      .read("fault", host.fault, parse_fault)
      .read("staged_model", host.staged_model)
      .read("address", host.address)
      .read("stopped", host.stopped, parse_stop_cause)
      .read("state_since", host.state_since);
  TRY(fields.result());
  return host;
}

Json to_json(const Attempt& attempt) {
  Json json{{"number", attempt.number},
            {"token", attempt.token},
            {"state", to_string(attempt.state)},
            {"hosts", list_json(attempt.hosts)},
            {"started", instant_json(attempt.started)},
            {"training_started", instant_json(attempt.training_started)},
            {"ended", instant_json(attempt.ended)}};
  if (attempt.first_failed) json["first_failed"] = *attempt.first_failed;
  if (!attempt.interruption.empty()) json["interruption"] = attempt.interruption;
  if (attempt.interrupted) {
    json["interrupted"] = instant_json(attempt.interrupted);
    json["notice"] = attempt.notice.count();
    if (attempt.preempted) json["preempted"] = true;
  }
  if (attempt.warm_pool != 0) json["warm_pool"] = attempt.warm_pool;
  if (!attempt.environment.empty()) json["environment"] = attempt.environment;
  if (attempt.spot) json["spot"] = true;
  if (attempt.exit_code) json["exit_code"] = *attempt.exit_code;
  if (!attempt.failure.empty()) json["failure"] = attempt.failure;
  if (attempt.fault) json["fault"] = to_string(*attempt.fault);
  if (!attempt.machine.empty()) json["machine"] = attempt.machine;
  return json;
}

Result<Attempt> attempt_from_json(const Json& json) {
  Attempt attempt;
  int64_t notice_milliseconds = 0;
  Fields fields(json, "attempt");
  fields.read("number", attempt.number)
      .read("token", attempt.token)
      .read("state", attempt.state, parse_attempt_state)
      .read("hosts", attempt.hosts, host_from_json)
      .read("first_failed", attempt.first_failed)
      .read("interruption", attempt.interruption)
      .read("interrupted", attempt.interrupted)
      .read("notice", notice_milliseconds)
      .read("preempted", attempt.preempted)
      .read("warm_pool", attempt.warm_pool)
      .read("environment", attempt.environment)
      .read("spot", attempt.spot)
      .read("exit_code", attempt.exit_code)
      .read("failure", attempt.failure)
      .read("fault", attempt.fault, parse_fault)
      .read("machine", attempt.machine)
      .read("started", attempt.started)
      .read("training_started", attempt.training_started)
      .read("ended", attempt.ended);
  TRY(fields.result());
  attempt.notice = Duration{notice_milliseconds};
  return attempt;
}

Json to_json(const WarmPool& pool) {
  Json json{{"state", to_string(pool.state)},
            {"keep_alive_seconds", pool.keep_alive_seconds},
            {"available", instant_json(pool.available)},
            {"ended", instant_json(pool.ended)}};
  if (!pool.reused_by.empty()) json["reused_by"] = pool.reused_by;
  return json;
}

Result<WarmPool> warm_pool_from_json(const Json& json) {
  WarmPool pool;
  Fields fields(json, "warm_pool");
  fields.read("state", pool.state, parse_warm_pool_state)
      .read("keep_alive_seconds", pool.keep_alive_seconds)
      .read("available", pool.available)
      .read("ended", pool.ended)
      .read("reused_by", pool.reused_by);
  TRY(fields.result());
  if (pool.state == WarmPoolState::available && !pool.available)
    return invalid("warm_pool.available must say since when");
  return pool;
}

Json to_json(const Transition& transition) {
  return {{"phase", to_string(transition.phase)},
          {"message", transition.message},
          {"start", instant_json(transition.start)},
          {"end", instant_json(transition.end)}};
}

Result<Transition> transition_from_json(const Json& json) {
  Transition transition;
  Fields fields(json, "transition");
  fields.read("phase", transition.phase, parse_phase)
      .read("message", transition.message)
      .read("start", transition.start)
      .read("end", transition.end);
  TRY(fields.result());
  return transition;
}

}  // namespace

Result<AttemptId> parse_attempt_id(std::string_view text) {
  const auto bad = [&] { return invalid("'" + shorten(text, 60) + "' is not an attempt, like j17a1"); };
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

// Counts in an earlier version's ledger may exceed the limits, so the sum saturates.
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

bool same_hosts(const JobSpec& kept, const JobSpec& next) {
  const auto asked = [](const JobSpec& spec, const char* outer, const char* inner) {
    const auto found = spec.request.find(outer);
    if (found == spec.request.end() || (inner && !found->is_object())) return Json();
    return inner ? found->value(inner, Json()) : *found;
  };
  const bool same_groups = std::equal(kept.groups.begin(), kept.groups.end(), next.groups.begin(),
                                      next.groups.end(), [](const InstanceGroup& a, const InstanceGroup& b) {
                                        return a.instance_type == b.instance_type && a.count == b.count;
                                      });
  return same_groups && kept.role_arn == next.role_arn && kept.volume_gib == next.volume_gib &&
         kept.network_isolation == next.network_isolation && kept.encrypt_traffic == next.encrypt_traffic &&
         asked(kept, "VpcConfig", nullptr) == asked(next, "VpcConfig", nullptr) &&
         asked(kept, "ResourceConfig", "VolumeKmsKeyId") == asked(next, "ResourceConfig", "VolumeKmsKeyId");
}

bool Channel::is_of(const std::string& group) const {
  return groups.empty() || std::find(groups.begin(), groups.end(), group) != groups.end();
}

Json to_json(const Share& share) {
  return {{"cpus", share.cpus}, {"memory_bytes", share.memory_bytes}, {"gpus", share.gpus}};
}

Result<Share> share_from_json(const Json& json) {
  Share share;
  Fields fields(json, "share");
  fields.read("cpus", share.cpus).read("memory_bytes", share.memory_bytes).read("gpus", share.gpus);
  TRY(fields.result());
  return share;
}

Json to_json(const Tag& tag) { return {{"key", tag.key}, {"value", tag.value}}; }

Result<Tag> tag_from_json(const Json& json) {
  Tag tag;
  TRY(Fields(json, "tag").read("key", tag.key).read("value", tag.value).result());
  return tag;
}

Result<JobNumber> job_number_from_json(const Json& json) {
  if (!json.is_number_unsigned()) return invalid("a job must be a number");
  return json.get<JobNumber>();
}

Json to_json(const JobKey& key) { return {{"region", key.region}, {"name", key.name}}; }

Result<JobKey> job_key_from_json(const Json& json) {
  JobKey key;
  TRY(Fields(json, "key").read("region", key.region).read("name", key.name).result());
  return key;
}

Json to_json(const JobSpec& spec) {
  Json json{{"image", spec.image},
            {"entrypoint", spec.entrypoint},
            {"arguments", spec.arguments},
            {"environment", spec.environment},
            {"hyperparameters", spec.hyperparameters},
            {"channels", list_json(spec.channels)},
            {"metrics", list_json(spec.metrics)},
            {"groups", list_json(spec.groups)},
            {"volume_gib", spec.volume_gib},
            {"role_arn", spec.role_arn},
            {"output_uri", spec.output_uri},
            {"output_kms_key", spec.output_kms_key},
            {"compress_model", spec.compress_model},
            {"max_runtime_seconds", spec.max_runtime_seconds},
            {"spot", spec.spot},
            {"retries_max", spec.retries_max},
            {"keep_alive_seconds", spec.keep_alive_seconds},
            {"network_isolation", spec.network_isolation},
            {"encrypt_traffic", spec.encrypt_traffic},
            {"request", spec.request}};
  if (spec.max_wait_seconds) json["max_wait_seconds"] = *spec.max_wait_seconds;
  if (spec.max_pending_seconds) json["max_pending_seconds"] = *spec.max_pending_seconds;
  if (spec.checkpoint) json["checkpoint"] = to_json(*spec.checkpoint);
  if (!spec.preferences.empty()) json["preferences"] = list_json(spec.preferences);
  if (spec.queue) json["batch"] = queued_json(spec);
  if (!spec.principal.empty()) json["principal"] = spec.principal;
  return json;
}

Result<JobSpec> job_spec_from_json(const Json& json) {
  JobSpec spec;
  Json queued;
  Fields fields(json, "spec");
  fields.read("image", spec.image)
      .read("entrypoint", spec.entrypoint)
      .read("arguments", spec.arguments)
      .read("environment", spec.environment)
      .read("hyperparameters", spec.hyperparameters)
      .read("channels", spec.channels, channel_from_json)
      .read("metrics", spec.metrics, metric_from_json)
      .read("groups", spec.groups, group_from_json)
      .read("preferences", spec.preferences, group_from_json)
      .read("volume_gib", spec.volume_gib)
      .read("principal", spec.principal)
      .read("role_arn", spec.role_arn)
      .read("output_uri", spec.output_uri)
      .read("output_kms_key", spec.output_kms_key)
      .read("compress_model", spec.compress_model)
      .read("max_runtime_seconds", spec.max_runtime_seconds)
      .read("spot", spec.spot)
      .read("max_wait_seconds", spec.max_wait_seconds)
      .read("max_pending_seconds", spec.max_pending_seconds)
      .read("retries_max", spec.retries_max)
      .read("checkpoint", spec.checkpoint, checkpoint_from_json)
      .read("keep_alive_seconds", spec.keep_alive_seconds)
      .read("network_isolation", spec.network_isolation)
      .read("encrypt_traffic", spec.encrypt_traffic)
      .read("batch", queued)
      .read("request", spec.request);
  TRY(fields.result());
  if (!queued.is_null()) TRY(read_queued(queued, spec).in("spec.batch"));
  if (spec.groups.empty()) return invalid("spec.groups must name at least one instance group");
  return spec;
}

Json to_json(const Job& job) {
  Json json = progress_json(job);
  json["spec"] = to_json(job.spec);
  return json;
}

Json progress_json(const Job& job) {
  Json json{{"number", job.number},
            {"key", to_json(job.key)},
            {"account", job.account},
            {"state", to_string(job.state)},
            {"created", instant_json(job.created)},
            {"modified", instant_json(job.modified)},
            {"transitions", list_json(job.transitions)},
            {"wait_reason", job.wait_reason},
            {"note", job.note},
            {"stop_requested", instant_json(job.stop_requested)},
            {"stop_cause", to_string(job.stop_cause)},
            {"attempts", list_json(job.attempts)},
            {"failure_reason", job.failure_reason},
            {"model_uri", job.model_uri},
            {"output_uri", job.output_uri},
            {"training_start", instant_json(job.training_start)},
            {"training_end", instant_json(job.training_end)}};
  if (job.clock_offset != Duration{}) json["clock_offset"] = job.clock_offset.count();
  if (job.warm_pool) json["warm_pool"] = to_json(*job.warm_pool);
  if (job.withdrawn != Withdrawn::no) {
    json["withdrawn"] = to_string(job.withdrawn);
    json["withdrawn_reason"] = job.withdrawn_reason;
  }
  if (!job.awaits.empty()) json["awaits"] = job.awaits;
  if (job.new_priority) json["new_priority"] = *job.new_priority;
  if (job.selected) json["selected"] = *job.selected;
  if (job.parent != 0) json["parent"] = job.parent;
  if (job.children_made > 0) json["children_made"] = job.children_made;
  if (!job.awaits_alike.empty()) json["awaits_alike"] = job.awaits_alike;
  return json;
}

Result<Job> job_from_json(const Json& json) {
  Job job;
  int64_t clock_offset = 0;
  Fields fields(json, "job");
  fields.read("number", job.number)
      .read("key", job.key, job_key_from_json)
      .read("account", job.account)
      .read("spec", job.spec, job_spec_from_json)
      .read("state", job.state, parse_job_state)
      .read("created", job.created)
      .read("modified", job.modified)
      .read("transitions", job.transitions, transition_from_json)
      .read("wait_reason", job.wait_reason)
      .read("note", job.note)
      .read("stop_requested", job.stop_requested)
      .read("stop_cause", job.stop_cause, parse_stop_cause)
      .read("withdrawn", job.withdrawn, parse_withdrawn)
      .read("withdrawn_reason", job.withdrawn_reason)
      .read("awaits", job.awaits, job_number_from_json)
      .read("new_priority", job.new_priority)
      .read("selected", job.selected)
      .read("parent", job.parent)
      .read("children_made", job.children_made)
      .read("awaits_alike", job.awaits_alike, job_number_from_json)
      .read("attempts", job.attempts, attempt_from_json)
      .read("failure_reason", job.failure_reason)
      .read("model_uri", job.model_uri)
      .read("output_uri", job.output_uri)
      .read("training_start", job.training_start)
      .read("training_end", job.training_end)
      .read("warm_pool", job.warm_pool, warm_pool_from_json)
      .read("clock_offset", clock_offset);
  TRY(fields.result());
  job.clock_offset = Duration{clock_offset};
  job.use_selected();
  return job;
}

}  // namespace trainyard::domain
