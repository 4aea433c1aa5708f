// Computes the first jobs of each job queue that are ready to run, and since when each has had its
// position. Each iteration of reconcile computes them again from the scheduler's order; only the
// times are carried over. They are not stored: after a restart the times begin at zero.
//
// Threads: pure; SharedQueueHeads is guarded by its own lock. Errors: none.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "batch/catalog.hpp"
#include "domain/job.hpp"
#include "schedule/plan.hpp"

namespace trainyard::reconcile {

struct HeadJob {
  domain::JobNumber job = 0;
  Instant since;  // it has had this position since then
  schedule::WaitCause cause = schedule::WaitCause::other;
  Instant cause_since;  // it has had this position and cause since then
};

struct QueueHead {
  std::vector<HeadJob> jobs;                 // at most kHeadJobsMax, the next one first
  std::map<std::string, HeadJob> of_shares;  // the first job of each quota share
};

struct QueueHeads {
  std::map<domain::JobKey, QueueHead> queues;  // of queues with waiting jobs
  Instant seen;
};

inline constexpr size_t kHeadJobsMax = 100;  // of a queue, as AWS shows
// Jobs of a queue that are examined to find the first one of each quota share.
inline constexpr size_t kHeadScanMax = 20'000;

// Returns AWS's code of the reason for which a job stays RUNNABLE, which also identifies it in
// jobStateTimeLimitActions; "" if AWS has none.
std::string_view wait_code(schedule::WaitCause cause);

// `waits` has the next job first. Its order counts for queues with a scheduling policy; other
// queues have the order of submission. Requires: `jobs` is ordered by number.
QueueHeads next_queue_heads(const QueueHeads& before,
                            const std::vector<std::shared_ptr<const domain::Job>>& jobs,
                            const batch::Catalog& catalog, const std::vector<schedule::Wait>& waits,
                            Instant now);

// A job that has been at the head of its queue for longer than the queue allows. A limit whose
// reason is one of AWS's codes applies to jobs that wait with that code, any other to all jobs.
struct Overdue {
  domain::JobNumber job = 0;
  domain::Cancellation how = domain::Cancellation::cancelled;
  std::string reason;
};
std::vector<Overdue> overdue_at_heads(const QueueHeads& queue_heads, const batch::Catalog& catalog,
                                      Instant now);

// SharedQueueHeads passes the queue heads from reconcile to readers on other threads.
class SharedQueueHeads {
 public:
  std::shared_ptr<const QueueHeads> get() const {
    const MutexLock lock(mutex_);
    return queue_heads_;
  }
  void put(QueueHeads queue_heads) {
    auto next = std::make_shared<const QueueHeads>(std::move(queue_heads));
    const MutexLock lock(mutex_);
    queue_heads_ = std::move(next);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const QueueHeads> queue_heads_ GUARDED_BY(mutex_) =
      std::make_shared<const QueueHeads>();
};

}  // namespace trainyard::reconcile
