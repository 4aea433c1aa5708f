// Implements ReplayJobs: replays the jobs of a past period with other machines, policies or limits.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "domain/instance_type.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/explanation_view.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;
using schedule::ReplayChangeKind;

constexpr Duration kReplayedByDefault = 24h;
constexpr int64_t kAffectedByDefault = 20;

Result<domain::Share> machine_of(const own::ReplayChange& change) {
  if (!change.instance_type)
    return domain::Share{.cpus = change.cpus.value_or(0),
                         .memory_bytes = change.memory_in_bytes.value_or(0),
                         .gpus = change.gpus.value_or(0)};
  // Batch's names lack the prefix.
  auto type = domain::find_instance_type(*change.instance_type);
  if (!type) type = domain::find_instance_type("ml." + *change.instance_type);
  if (!type) return invalid("unknown instance type '" + *change.instance_type + "'");
  return domain::Share{.cpus = double(type->cpus),
                       .memory_bytes = int64_t(type->memory_gib * double(int64_t{1} << 30)),
                       .gpus = int64_t(type->gpus)};
}

Result<schedule::ReplayChange> change_of(const own::ReplayChange& request) {
  schedule::ReplayChange change;
  change.kind = TRY(schedule::kReplayChangeKinds.parse(*request.kind));
  change.name = request.name.value_or("");
  change.share = request.share.value_or("");
  change.policy = request.policy.value_or("");
  const bool has_value = change.kind >= ReplayChangeKind::set_priority;
  if (has_value && !request.value) return invalid(*request.kind + " needs a Value");
  if (change.kind != ReplayChangeKind::add_machines &&
      change.kind != ReplayChangeKind::set_submit_rate && change.name.empty())
    return invalid(*request.kind + " needs a Name");
  change.value = request.value.value_or(0);
  change.count = uint32_t(std::clamp<int64_t>(request.machine_count.value_or(1), 0, 1'000'000));
  if (change.kind == ReplayChangeKind::add_machines) {
    change.machine = TRY(machine_of(request));
    if (change.name.empty() && request.instance_type) change.name = *request.instance_type;
  }
  return change;
}

own::ReplayWaits to_shape(const schedule::WaitSummary& waits) {
  own::ReplayWaits out;
  out.jobs = int64_t(waits.jobs);
  out.not_started = int64_t(waits.not_started);
  out.mean_milliseconds = waits.mean.count();
  out.median_milliseconds = waits.median.count();
  out.p95_milliseconds = waits.p95.count();
  out.longest_milliseconds = waits.longest.count();
  return out;
}

double part_used(const std::vector<double>& used, double all) {
  if (used.empty() || all <= 0) return 0;
  return std::accumulate(used.begin(), used.end(), 0.0) / double(used.size()) / all;
}

own::ReplayOutcome to_shape(const schedule::ReplayOutcome& outcome) {
  own::ReplayOutcome out;
  out.name = outcome.name;
  out.complete = outcome.complete;
  out.reached_time = outcome.reached;
  out.waits = to_shape(outcome.waits);
  out.groups.emplace();
  for (const schedule::WaitGroup& group : outcome.groups) {
    own::ReplayGroup& one = out.groups->emplace_back();
    one.by = std::string(schedule::kReplayGroupings.text(group.by));
    one.key = group.key;
    one.waits = to_shape(group.waits);
  }
  out.cpus = outcome.cpus;
  out.gpus = outcome.gpus;
  out.cpu_utilization = part_used(outcome.cpus_used, outcome.cpus);
  out.gpu_utilization = part_used(outcome.gpus_used, outcome.gpus);
  out.cpus_used = outcome.cpus_used;
  out.gpus_used = outcome.gpus_used;
  out.preemptions = int64_t(outcome.preemptions);
  out.lost_cpu_seconds = outcome.lost_cpu_seconds;
  out.makespan_milliseconds = outcome.makespan.count();
  out.unfinished_jobs = int64_t(outcome.unfinished);
  if (outcome.start_error_median)
    out.start_error_median_milliseconds = outcome.start_error_median->count();
  if (outcome.start_error_p95) out.start_error_p95_milliseconds = outcome.start_error_p95->count();
  return out;
}

own::ReplayJobsResponse to_shape(const control::ReplayReport& report) {
  own::ReplayJobsResponse out;
  out.replay_id = report.id;
  out.completed = report.done;
  out.progress = report.progress;
  if (!report.done) return out;
  out.period_start = report.begin;
  out.period_end = report.end;
  out.jobs = int64_t(report.counted);
  out.jobs_before = int64_t(report.jobs - report.counted);
  out.estimated_jobs = int64_t(report.counts.estimated);
  out.running_jobs = int64_t(report.counts.still_running);
  out.cancelled_jobs = int64_t(report.counts.never_started);
  out.unplaceable_jobs = int64_t(report.counts.unplaceable);
  out.outcomes.emplace();
  for (const auto& outcome : report.outcomes) out.outcomes->push_back(to_shape(outcome));
  out.most_affected.emplace();
  for (const control::AffectedJob& job : report.affected) {
    own::ReplayedJob& one = out.most_affected->emplace_back();
    one.job_name = job.key.name;
    one.waits.emplace();
    for (const auto& wait : job.waits) {
      own::ReplayedWait& cell = one.waits->emplace_back();
      if (wait) cell.milliseconds = wait->count();
    }
  }
  return out;
}

class Replays {
 public:
  explicit Replays(const Services& services) : services_(services) {}

  Outcome<own::ReplayJobsResponse> of(const Context& context,
                                      const own::ReplayJobsRequest& request) const {
    const control::ReplayCaller caller{
        .principal = context.principal.arn,
        .may_see = [&](const domain::JobKey& key) { return context.may_see(key); }};
    auto report = request.replay_id ? services_.control.resume_replay(caller, *request.replay_id)
                                    : started(caller, context, request);
    if (!report && (report.error().kind == Kind::invalid || report.error().kind == Kind::not_found))
      return validation_exception(report.error().message);
    if (!report) return report.error();
    return to_shape(*report);
  }

 private:
  Result<control::ReplayReport> started(const control::ReplayCaller& caller, const Context& context,
                                        const own::ReplayJobsRequest& request) const {
    const Instant now = context.now;
    control::ReplayRequest replay{.region = context.region};
    replay.end = std::min(request.period_end.value_or(now), now);
    replay.begin = request.period_start.value_or(replay.end - kReplayedByDefault);
    replay.affected_max = size_t(
        std::clamp<int64_t>(request.most_affected_count.value_or(kAffectedByDefault), 0, 100));
    if (request.variants)
      for (const own::ReplayVariant& variant : *request.variants) {
        schedule::ReplayVariant& one = replay.variants.emplace_back();
        one.name = *variant.name;
        for (const own::ReplayChange& change : *variant.changes)
          one.changes.push_back(TRY(change_of(change).in("variant " + one.name)));
      }
    return services_.control.start_replay(caller, std::move(replay));
  }

  const Services& services_;
};

}  // namespace

void add_replays(OperationTable& table, const Settings&, const Services& services) {
  table.add<own::ReplayJobs>([replays = std::make_shared<Replays>(services)](
                                 const Context& context, const own::ReplayJobsRequest& request) {
    return replays->of(context, request);
  });
}

}  // namespace trainyard::api::trainyard_api
