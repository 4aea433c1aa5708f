// JobEvents puts an event on the bus for each change of a job's state.
//
// What was announced of a job is stored in the same transaction as the deliveries of its events. At
// the start the jobs of the ledger are compared with it, so a change is announced at least once,
// also when the server was killed between the ledger's commit and the event. Of a job of Batch that
// changed several times before the kill, only the last change is announced; of a training job, each
// phase. Changes of jobs that ended more than kOverKept before the kill count as announced.
//
// Threads:  changed() and found() from any, without blocking; one of its own from start() on.
// Errors:   a fault of the store is logged, and changes are put again later; faults of ranks are
//           dropped.
// Lifetime: bus, control and clock outlive it.
#pragma once

#include <deque>
#include <map>
#include <memory>
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
  // Changes that wait; with more, all jobs are compared again.
  static constexpr size_t kChangesMax = 20'000;
  static constexpr Duration kOverKept = 2h;

  JobEvents(notify::EventBus& bus, control::Control& control, std::vector<std::string> regions,
            Clock& clock);
  ~JobEvents();  // ends the thread
  JobEvents(const JobEvents&) = delete;

  // Faults that wait; further ones are dropped, with a line in the server's log.
  static constexpr size_t kFaultsMax = 1'000;

  // Takes a fault of a job's ranks. It is not stored: after a kill it is not announced.
  void found(const domain::JobKey& job, const diagnosis::FaultNews& news);
  // Takes a job that has changed.
  void changed(const std::shared_ptr<const domain::Job>& job);
  // Reads what was announced. Call it before start() or step(). A record that cannot be read is
  // logged and left out.
  Result<void> open();
  void start();

  // Puts the events of the changes that wait, and of all jobs the first time. For tests without
  // start(). Errors: those of the store; the changes wait on.
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
  void add_mark(domain::JobNumber job, const Announced& announced,
                std::vector<notify::Document>& documents) const;
  void forget_old(std::vector<notify::Document>& documents);

  notify::EventBus& bus_;
  control::Control& control_;
  const std::vector<std::string> regions_;
  Clock& clock_;

  // Confined to the thread.
  std::map<domain::JobNumber, Announced> announced_;
  std::optional<Instant> position_;  // the newest change that was announced
  std::vector<notify::Document> unwritten_;
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
