// Explainer explains why a job waits and what would let it start, and when a new job would start,
// from the snapshot of the last iteration of reconcile. It computes on the caller's thread, one
// explanation at a time, so that explanations use at most one processor; the loops only pass their
// snapshots to it.
//
// Threads: call from anywhere.
// Errors:  those of reconcile::explain and preview; exhausted, when kExplanationsWaitingMax others
//          wait.
#pragma once

#include <functional>
#include <memory>

#include "base/thread_safety.hpp"
#include "control/control.hpp"
#include "reconcile/explain.hpp"

namespace trainyard::control {

// Each waiting explanation blocks a thread of its caller, for a second at most.
inline constexpr size_t kExplanationsWaitingMax = 4;

// Returns the time limits of operations from the settings.
reconcile::Timeout timeout_of(const Settings& settings);

class Explainer {
 public:
  // Lifetime: the settings outlive it.
  explicit Explainer(const Settings& settings) : settings_(settings) {}

  // Replaces the snapshot. `now` is control's time of the iteration.
  void put(reconcile::Snapshot snapshot, Instant now);
  Result<reconcile::Explanation> explain(domain::JobNumber job,
                                         const reconcile::ExplainRights& rights);
  Result<reconcile::Explanation> preview(CreateJob create, const reconcile::ExplainRights& rights,
                                         bool with_changes);

  struct Read {
    reconcile::Snapshot snapshot;
    Instant now;
  };
  // Returns the snapshot of the last put(); nullptr: none yet.
  std::shared_ptr<const Read> last() {
    const MutexLock lock(mutex_);
    return last_;
  }

 private:
  using Compute = std::function<Result<reconcile::Explanation>(const Read& last)>;
  // Runs `compute` when earlier ones have ended. Errors also: exhausted, if too many wait.
  Result<reconcile::Explanation> admit_and_compute(const Compute& compute);
  Result<reconcile::Explanation> compute_alone(const Compute& compute);

  const Settings& settings_;
  Mutex mutex_;
  std::shared_ptr<const Read> last_ GUARDED_BY(mutex_);
  size_t waiting_ GUARDED_BY(mutex_) = 0;
  Mutex alone_;  // held while an explanation is computed; locked before mutex_
};

}  // namespace trainyard::control
