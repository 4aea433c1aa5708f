// Checks each job at the end of the simulation: its accounting, and the cause of its end.
#include "sim/checkers.hpp"
#include "sim/workload.hpp"

namespace trainyard::sim {

using namespace domain;

void Checkers::check_outcome(const Job& job) {
  check_accounting(job);
  check_retries(job);
  if (job.spec.queue && job.spec.queue->preemptions_max)
    World::check(
        preemptions_[job.number] <= *job.spec.queue->preemptions_max + 1,
        title(job) + " was preempted " + std::to_string(preemptions_[job.number]) + " times");
  if (job.is_array()) return check_array(job);
  if (job.parent != 0) check_child(job);
  if (job.state == JobState::completed) check_completed(job);
  if (job.state == JobState::stopped) check_stopped(job);
  if (job.state == JobState::failed) check_failed(job);
}

// Checks that training lasts from the first running host to the end, that the phases add up to the
// whole time, and that only running time is billed.
void Checkers::check_accounting(const Job& job) {
  const auto began = first_running_.lower_bound({job.number, 0});
  const bool ran = began != first_running_.end() && began->first.job == job.number;
  World::check(bool(job.training_start) == ran,
               title(job) + ": training start without a host that ran");
  if (job.training_start) {
    World::check(*job.training_start == began->second,
                 title(job) + ": training did not start when its first host ran");
    World::check(job.training_end && *job.training_end >= *job.training_start,
                 title(job) + ": training has no end");
    World::check(*job.training_end == *job.attempt()->ended,
                 title(job) + ": training did not end with its last attempt");
    World::check(job.ran(*job.training_end) <= *job.training_end - *job.training_start,
                 title(job) + ": more is billed than was trained");
  }
  World::check(job.ran(job.modified) == ran_[job.number],
               title(job) + ": " + std::to_string(job.ran(job.modified).count()) +
                   " ms are billed, but it ran for " + std::to_string(ran_[job.number].count()) +
                   " ms");
  Duration sum{};
  for (const Transition& each : job.transitions) sum += *each.end - each.start;
  World::check(sum == job.transitions.back().start - job.created,
               title(job) + ": the phases do not add up");
}

void Checkers::check_completed(const Job& job) {
  World::check(!job.model_uri.empty() || job.spec.queue, title(job) + " completed without a model");
  for (HostIndex host = 0; host < job.spec.hosts(); ++host) {
    const Process& process = processes_[{{job.number, job.attempt()->number}, host}];
    World::check(process.runs == 1 && process.code == 0,
                 title(job) + " completed, but " + host_name(host) + " did not");
  }
  World::check(!stops_.contains(job.key),
               title(job) + " completed after its stop was acknowledged");
}

void Checkers::check_stopped(const Job& job) {
  if (job.stop_cause == StopCause::max_runtime) {
    World::check(job.phase() == Phase::max_runtime_exceeded,
                 title(job) + " exceeded its maximum runtime, but the API does not report it");
    World::check(first_ran_.contains(job.number) &&
                     finished_[job.number] - first_ran_[job.number] + kTimeTolerance >=
                         std::chrono::seconds(job.spec.max_runtime_seconds),
                 title(job) + " was stopped before its maximum runtime");
  } else if (job.stop_cause == StopCause::max_wait) {
    World::check(job.phase() == Phase::max_wait_time_exceeded,
                 title(job) + " exceeded its maximum wait time, but the API does not report it");
    World::check(job.spec.spot && *job.stop_requested - job.created >=
                                      std::chrono::seconds(*job.spec.max_wait_seconds),
                 title(job) + " was stopped before its maximum wait time");
  } else if (job.stop_cause == StopCause::max_pending) {
    World::check(job.attempts.empty() && *job.stop_requested - job.created >=
                                             std::chrono::seconds(*job.spec.max_pending_seconds),
                 title(job) + " was stopped before its maximum wait time");
  } else {
    const Job* array = job.parent != 0 ? durable(job.parent) : nullptr;
    World::check(stops_.contains(job.key) || stop_requests_.contains(job.key) ||
                     (array && stop_requests_.contains(array->key)) ||
                     job.cancellation == Cancellation::dependency_failed,
                 title(job) + " was stopped without a request");
    World::check(job.phase() == Phase::stopped,
                 title(job) + " was stopped, but the API reports another phase");
  }
}

void Checkers::check_failed(const Job& job) {
  const auto begins = [&](const char* kind) { return job.failure_reason.starts_with(kind); };
  if (job.attempts.empty())  // it could not be planned
    return World::check(job.spec.principal == kHostileUser && begins("InternalServerError: "),
                        title(job) + " failed before its first attempt: " + job.failure_reason);
  if (job.attempt()->preempted && !job.attempt()->first_failed) return check_preemptions(job);
  // A job that was preempted while it stopped starts no further attempt, and its model may be lost.
  const bool preempted_while_stopping =
      job.stop_requested && preempted_attempts_.contains({job.number, job.attempt()->number});
  World::check(allowed_failures_.contains(job.number) || preempted_while_stopping,
               title(job) + " failed without a cause: " + job.failure_reason);
  World::check(
      begins("AlgorithmError: ") || begins("ClientError: ") || begins("InternalServerError: "),
      title(job) + " failed for '" + job.failure_reason + "'");
  const auto first = first_failed_host_.find({job.number, job.attempt()->number});
  World::check(first != first_failed_host_.end(),
               title(job) + " failed, but none of its hosts did");
  World::check(job.stop_requested || job.spec.hosts() == 1 ||
                   job.failure_reason.ends_with("(" + host_name(first->second) + ")"),
               title(job) + " failed for '" + job.failure_reason + "', but " +
                   host_name(first->second) + " failed first");
  World::check(
      !begins("AlgorithmError: ") || job.failure_reason.find(", exit code: 3") != std::string::npos,
      title(job) + " failed for '" + job.failure_reason + "', but its process exited with 3");
}

}  // namespace trainyard::sim
