// JobEvents puts an event on the bus for each change of a job's state.
//
// The record of announced changes is stored in the same transaction as the deliveries of the
// events. When the server starts, the jobs of the ledger are compared with it, so a change is
// announced at least once, even if the server was killed between the ledger's commit and the event.
// If a Batch job changed several times before the kill, only the last change is announced; of a
// training job, each phase. Changes of jobs that ended more than kOverKept before the kill count as
// announced.
//
// Threads:  add_change() and add_fault() from any, without blocking. start() starts a thread.
// Errors:   a fault of the store is logged, and changes are put again later; faults of ranks are
//           dropped.
// Lifetime: bus, control and clock outlive it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "control/control.hpp"
#include "events/job_event.hpp"
#include "notify/event_bus.hpp"

namespace trainyard::api::events {

class JobEvents {
 public:
  // Limit of queued changes. If there are more, all jobs are compared again.
  static constexpr size_t kChangesMax = 20'000;
  static constexpr Duration kOverKept = 2h;

  JobEvents(notify::EventBus& bus, control::Control& control, std::vector<std::string> regions,
            Clock& clock);
  ~JobEvents();  // ends the thread
  JobEvents(const JobEvents&) = delete;

  // Limit of queued faults. Further ones are dropped, with a line in the server's log.
  static constexpr size_t kFaultsMax = 1'000;

  // Queues a fault of a job's ranks. It is not stored, so a kill loses it.
  void add_fault(const domain::JobKey& job, const diagnosis::FaultNews& news);
  // Queues a job that has changed.
  void add_change(const std::shared_ptr<const domain::Job>& job);
  // Reads the records of announced changes. Call it before start() or step(). An unreadable record
  // is logged and left out.
  Result<void> open();
  void start();

  // Puts the events of the queued changes; the first time of all jobs. For tests without start().
  // Errors: those of the store; the changes stay queued.
  Result<void> step();

 private:
  using JobPointer = std::shared_ptr<const domain::Job>;
  void run();
  Result<void> read_document(const notify::Document& each);
  std::deque<JobPointer> take(bool& compare);
  Result<void> compare_all(std::deque<JobPointer>& jobs);
  Result<void> add_children(const domain::Job& array, std::deque<JobPointer>& jobs);
  Result<void> announce(std::deque<JobPointer>& jobs);
  Result<void> announce_faults();
  void forget_old(Instant now);
  void compare(const domain::Job& job, Instant now, std::map<domain::JobNumber, Announced>& changed,
               std::vector<notify::Event>& events) const;
  Result<void> write(std::vector<notify::Event> events,
                     const std::map<domain::JobNumber, Announced>& changed, Instant position);

  notify::EventBus& bus_;
  control::Control& control_;
  const std::vector<std::string> regions_;
  Clock& clock_;

  // Confined to the thread of start().
  std::map<domain::JobNumber, Announced> announced_;
  std::optional<Instant> position_;        // the newest change that was announced
  bool is_written_ = true;                 // the store has the position and all marks
  std::set<domain::JobNumber> unwritten_;  // jobs whose marks are not stored, or are to be removed
  Instant written_{};
  Instant forgot_{};

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<JobPointer> changes_ GUARDED_BY(mutex_);
  std::deque<std::pair<domain::JobKey, diagnosis::FaultNews>> faults_ GUARDED_BY(mutex_);
  bool compare_ GUARDED_BY(mutex_) = true;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace trainyard::api::events
