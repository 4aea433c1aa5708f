// Checks deadlines, bills and histories against the true time, independent of the machines' clocks.
#include <cmath>

#include "base/json.hpp"
#include "sim/checkers.hpp"
#include "sim/workload.hpp"

namespace trainyard::sim {

using namespace domain;

// Checks a job that was ended because it waited or ran too long.
void Checkers::expired(const Json& command) {
  const auto number = JobNumber(*int_at(command, "job"));
  const Job* job = durable(number);
  World::check(job, "an expired job is not in the ledger");
  const std::string cause = *string_at(command, "cause");
  const bool ran_too_long = cause == to_string(StopCause::max_runtime);
  const auto since = ran_too_long ? first_ran_.find(number) : created_.find(number);
  World::check(since != (ran_too_long ? first_ran_.end() : created_.end()),
               title(*job) + " exceeded a time limit before it began");
  const int64_t seconds = ran_too_long ? job->spec.max_runtime_seconds
                          : cause == to_string(StopCause::max_wait)
                              ? job->spec.max_wait_seconds.value_or(0)
                              : job->spec.max_pending_seconds.value_or(0);
  const Duration passed = world_.elapsed() - since->second;
  World::check(passed + kTimeTolerance >= std::chrono::seconds(seconds),
               title(*job) + " was ended by " + cause + " after " +
                   std::to_string(passed.count() / 1000) + " s of " + std::to_string(seconds));
}

// Checks the times of a job after each commit that changed it.
void Checkers::check_times(const Job& job) {
  const auto [created, fresh] = created_.emplace(job.number, world_.elapsed());
  if (fresh && job.parent == 0 && job.spec.principal != kHostileUser)
    World::check(std::abs((job.created - server_clock_.now()).count()) <= kTimeTolerance.count(),
                 title(job) + " has a creation time that differs from the clock");
  if (job.training_start) {
    World::check(job.created <= *job.training_start,
                 title(job) + " started training before it was created");
    World::check(!job.training_end || *job.training_start <= *job.training_end,
                 title(job) + " ended its training before it began");
  }
  if (!job.finished() || !finished_.emplace(job.number, world_.elapsed()).second) return;
  const Duration ran = job.ran(job.modified), lived = world_.elapsed() - created->second;
  World::check(ran >= Duration{} && ran <= lived + kTimeTolerance,
               title(job) + ": " + std::to_string(ran.count() / 1000) +
                   " s are billed, but it existed for " + std::to_string(lived.count() / 1000) +
                   " s");
}

}  // namespace trainyard::sim
