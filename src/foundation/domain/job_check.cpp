#include "domain/job_check.hpp"

#include <cmath>
#include <string>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "domain/limits.hpp"

namespace trainyard::domain {
namespace {

// Texts are made only for errors: each decision checks the specs of all waiting jobs.

Result<void> within(std::string_view member, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return invalid(std::string(member) + " is " + std::to_string(value) + ", and must be between " +
                 std::to_string(least) + " and " + std::to_string(most));
}

Result<void> check_share(const Share& share) {
  if (!(share.cpus >= 0 && share.cpus <= kHostCpusMax))
    return invalid("cpus is " + std::to_string(share.cpus) + ", and must be between 0 and " +
                   std::to_string(int64_t(kHostCpusMax)));
  TRY(within("memory_bytes", share.memory_bytes, 0, kHostMemoryBytesMax));
  return within("gpus", share.gpus, 0, kHostGpusMax);
}

Result<void> check_group(const InstanceGroup& group) {
  TRY(within("the number of hosts", group.count, 1, kGangHostsMax));
  return group.share ? check_share(*group.share) : Result<void>();
}

Result<void> check_groups(const JobSpec& spec) {
  if (spec.groups.empty()) return invalid("groups must name at least one instance group");
  int64_t hosts = 0;  // 64 bits: each group has up to 2^32 hosts
  for (const InstanceGroup& group : spec.groups) {
    if (auto checked = check_group(group); !checked)
      return std::move(checked).error().in("instance group " + shorten(group.name, 64));
    hosts += group.count;
  }
  TRY(within("the number of hosts over all instance groups", hosts, 1, kGangHostsMax));
  if (spec.preferences.empty()) return {};
  TRY(within("the number of instance preferences", int64_t(spec.preferences.size()), 1,
             kPreferencesMax));
  TRY(within("the number of instance groups of a job with instance preferences",
             int64_t(spec.groups.size()), 1, 1));
  for (const InstanceGroup& group : spec.preferences)
    if (auto checked = check_group(group); !checked)
      return std::move(checked).error().in("instance preference " +
                                           shorten(group.instance_type, 64));
  return {};
}

Result<void> check_queued(const JobSpec& spec) {
  TRY(within("array_size", spec.array.size, 0, kArraySizeMax));
  if (spec.main_node) TRY(within("main_node", *spec.main_node, 0, int64_t(spec.hosts()) - 1));
  TRY(within("attempts_max", spec.retry.attempts_max, 0, kQueuedAttemptsMax));
  for (const Consumption& each : spec.queue->consumes)
    if (auto checked = within("its quantity", each.quantity, 0, kCountedMax); !checked)
      return std::move(checked).error().in("resource " + shorten(each.resource, 128));
  return {};
}

Result<void> check_instant(std::string_view member, const std::optional<Instant>& at) {
  if (!at) return {};
  return within(member, to_milliseconds(*at), -kInstantMillisecondsMax, kInstantMillisecondsMax);
}

Result<void> check_instants(const Attempt& attempt) {
  TRY(check_instant("attempt.started", attempt.started));
  TRY(check_instant("attempt.training_started", attempt.training_started));
  TRY(check_instant("attempt.interrupted", attempt.interrupted));
  TRY(check_instant("attempt.ended", attempt.ended));
  TRY(within("attempt.notice", attempt.notice.count(), 0, kSecondsMax * 1000));
  for (const Host& host : attempt.hosts) {
    TRY(check_instant("host.state_since", host.state_since));
    for (const HostStep& step : host.steps) TRY(check_instant("host.steps.at", step.at));
  }
  return {};
}

Result<void> check_instants(const Job& job) {
  TRY(check_instant("created", job.created));
  TRY(check_instant("modified", job.modified));
  TRY(within("clock_offset", job.clock_offset.count(), -kInstantMillisecondsMax,
             kInstantMillisecondsMax));
  TRY(check_instant("stop_requested", job.stop_requested));
  TRY(check_instant("training_start", job.training_start));
  TRY(check_instant("training_end", job.training_end));
  for (const Attempt& attempt : job.attempts) TRY(check_instants(attempt));
  if (!job.warm_pool) return {};
  TRY(check_instant("warm_pool.available", job.warm_pool->available));
  return within("warm_pool.keep_alive_seconds", job.warm_pool->keep_alive_seconds, 0, kSecondsMax);
}

Result<void> check_attempts(const Job& job) {
  const bool runs = job.state == JobState::active || job.state == JobState::stopping;
  for (const Attempt& attempt : job.attempts) {
    const bool present = &attempt == &job.attempts.back();
    if (attempt.state != AttemptState::ended && (!present || !runs))
      return invalid("attempt " + std::to_string(attempt.number) +
                     " has not ended, but the job is " + std::string(to_string(job.state)));
    if (attempt.state == AttemptState::ended && !attempt.ended)
      return invalid("attempt " + std::to_string(attempt.number) +
                     " has ended, but has no end time");
  }
  const Attempt* attempt = job.attempt();
  if (!attempt) {
    if (runs) return invalid("it is " + std::string(to_string(job.state)) + " without an attempt");
    return {};
  }
  if (runs && attempt->state == AttemptState::ended)
    return invalid("it runs, but its last attempt has ended");
  if (attempt->hosts.size() != job.spec.hosts())
    return invalid("its last attempt has " + counted(attempt->hosts.size(), "host") +
                   ", but its spec requests " + std::to_string(job.spec.hosts()));
  for (const Host& host : attempt->hosts) TRY(check_share(host.share).in("host"));
  if (attempt->first_failed && *attempt->first_failed >= attempt->hosts.size())
    return invalid("first_failed is " + std::to_string(*attempt->first_failed) +
                   ", but the attempt has " + counted(attempt->hosts.size(), "host"));
  return {};
}

Result<void> check_children(const Job& job) {
  if (!job.spec.queue) {
    if (job.parent != 0) return invalid("it is a child of an array, but has no queue");
    return {};
  }
  const int64_t size = job.spec.array.size;
  TRY(within("children_made", job.children_made, 0, job.is_array() ? size : 0));
  if (job.parent == 0) return {};
  if (job.number <= job.parent || job.number - job.parent > uint64_t(size))
    return invalid("job " + std::to_string(job.number) + " is not a child of the array " +
                   std::to_string(job.parent) + " of " + std::to_string(size));
  return {};
}

}  // namespace

Result<void> check_limits(const JobSpec& spec) {
  TRY(check_groups(spec));
  TRY(within("volume_gib", spec.volume_gib, 0, kVolumeGibMax));
  TRY(within("max_runtime_seconds", spec.max_runtime_seconds, 0, kSecondsMax));
  if (spec.max_wait_seconds)
    TRY(within("max_wait_seconds", *spec.max_wait_seconds, 0, kSecondsMax));
  if (spec.max_pending_seconds)
    TRY(within("max_pending_seconds", *spec.max_pending_seconds, 0, kSecondsMax));
  TRY(within("keep_alive_seconds", spec.keep_alive_seconds, 0, kSecondsMax));
  return spec.queue ? check_queued(spec) : Result<void>();
}

Result<void> check_consistent(const Job& job) {
  if (job.number == 0 || job.key.name.empty()) return invalid("number or name is missing");
  if (job.spec.groups.empty()) return invalid("groups must name at least one instance group");
  if (job.transitions.empty()) return invalid("transitions must have at least one phase");
  TRY(check_instants(job));
  if (job.is_array()) {
    if (!job.attempts.empty()) return invalid("it is an array, but has attempts");
    return check_children(job);
  }
  if (job.spec.main_host() && *job.spec.main_host() >= job.spec.hosts())
    return invalid("main_node is " + std::to_string(*job.spec.main_host()) + ", but the job has " +
                   counted(job.spec.hosts(), "host"));
  TRY(check_attempts(job));
  return check_children(job);
}

}  // namespace trainyard::domain
