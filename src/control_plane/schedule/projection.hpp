// Projects when a waiting job will start: it plans again at each instant at which a running job or
// a warm pool ends, as if every job took its longest time and no other job arrived.
//
// In the projection a preempted job ends within the time that preemption takes, and does not wait
// again; a job whose end is unknown never ends.
//
// Threads: pure. Errors: none. Cost: one plan for each instant, within the budget.
#pragma once

#include <optional>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// Limits what several plans may cost together. It counts plans and what they read, not time, so
// equal arguments give equal results.
class PlanBudget {
 public:
  // `entries_max` counts waiting jobs, running jobs and machines of all planned snapshots together.
  PlanBudget(size_t plans_max, size_t entries_max)
      : plans_left_(plans_max), entries_left_(entries_max) {}
  // Takes the cost of a plan of this snapshot from the budget. Returns false, and takes nothing, if
  // the rest does not suffice.
  bool take(const Snapshot& snapshot);
  // Returns true once a plan was rejected.
  bool spent() const { return spent_; }

 private:
  size_t plans_left_, entries_left_;
  bool spent_ = false;
};

// Limits the instants that one projection tries. Later starts are unknown.
inline constexpr size_t kProjectedPlansMax = 48;

// Returns nullopt if the start is unknown, or the budget is spent before it is found.
// Requires: as plan().
std::optional<Instant> projected_start(Snapshot snapshot, const Policy& policy, Instant now,
                                       domain::JobNumber job, Duration preemption_takes,
                                       PlanBudget& budget);

}  // namespace trainyard::schedule
