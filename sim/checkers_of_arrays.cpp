// Checks arrays with their children, and jobs with retries.
#include <algorithm>

#include "domain/array.hpp"
#include "sim/checkers.hpp"
#include "sim/workload.hpp"

namespace trainyard::sim {

using namespace domain;

// Checks that the children of an array have the numbers that the array reserved, and that its state
// matches theirs.
void Checkers::check_array(const Job& array) {
  World::check(array.attempts.empty(), title(array) + " is an array, but was placed");
  uint32_t made = 0, completed = 0;
  for (auto job = durable_.upper_bound(array.number); job != durable_.end(); ++job) {
    if (job->second.parent != array.number) continue;
    World::check(job->first <= array.number + array.spec.array.size,
                 title(job->second) + " has a number outside its array's range");
    ++made;
    completed += job->second.state == JobState::completed;
  }
  const uint32_t size = array.spec.array.size;
  World::check((array.state == JobState::completed) == (completed == size),
               title(array) + " is " + std::string(to_string(array.state)) + ", but of its " +
                   std::to_string(size) + " children " + std::to_string(completed) +
                   " have completed");
  World::check(made == size || array.stop_requested, title(array) + " lacks children");
}

// Checks that a child does not begin before the jobs that it depends on have succeeded.
void Checkers::check_child(const Job& child) {
  const Job& array = *durable(child.parent);
  const JobNumber index = child.number - child.parent;  // from 1
  std::vector<const Job*> dependencies;
  if (array.spec.array.sequential && index > 1) dependencies.push_back(durable(child.number - 1));
  for (const std::string& id : array.spec.depends_on)
    dependencies.push_back(durable(acknowledged_[{child.key.region, id}]));
  for (const std::string& id : array.spec.depends_on_alike)
    dependencies.push_back(durable(acknowledged_[{child.key.region, id}] + index));
  // A child that was never created has failed with its array.
  const bool all = std::ranges::all_of(
      dependencies, [](const Job* job) { return job && job->state == JobState::completed; });
  if (!child.attempts.empty())
    World::check(all, title(child) + " began before its dependencies had succeeded");
  for (const Job* job : dependencies)
    if (job && !child.attempts.empty())
      World::check(job->control_time(job->transitions.back().start) <=
                       child.control_time(child.attempts.front().started),
                   title(child) + " began before " + title(*job) + " ended");
  if (child.cancellation == Cancellation::dependency_failed)
    World::check(!all, title(child) + " failed for a dependency that had succeeded");
}

// Checks that a fault of the cluster fails a job only when no retry is left.
void Checkers::check_retries(const Job& job) {
  if (job.is_array()) return;  // its children are checked
  const uint32_t failed = failed_attempts_[job.number];
  if (job.spec.queue) {
    const uint32_t most = job.spec.retry.attempts_max;
    World::check(failed <= most, title(job) + " was tried " + std::to_string(failed) + " times");
    if (job.attempt() && job.attempt()->preempted && !job.attempt()->first_failed) return;
    World::check(job.state != JobState::failed || job.stop_requested || failed == most,
                 title(job) + " failed after " + std::to_string(failed) + " attempts of " +
                     std::to_string(most));
    return;
  }
  if (!job.spec.spot)
    World::check(failed <= job.spec.retries_max + 1,
                 title(job) + " was retried " + std::to_string(failed) + " times");
  if (job.state != JobState::failed || job.stop_requested) return;
  if (!job.failure_reason.starts_with("InternalServerError: ")) return;
  if (job.attempts.empty()) {  // it could not be planned
    World::check(job.spec.principal == kHostileUser,
                 title(job) + " failed before its first attempt");
    return;
  }
  World::check(!job.spec.spot,
               title(job) + " is a spot job, but failed for '" + job.failure_reason + "'");
  World::check(failed == job.spec.retries_max + 1,
               title(job) + " failed after " + std::to_string(failed) +
                   " attempts, but may be retried " + std::to_string(job.spec.retries_max) +
                   " times");
}

}  // namespace trainyard::sim
