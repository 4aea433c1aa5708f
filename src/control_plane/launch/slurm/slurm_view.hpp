// SlurmView keeps Slurm's last answer about its jobs and nodes. A thread of its own queries Slurm
// again, so its users wait for a moment at most, while slurmctld may be busy or away for minutes.
//
// An answer shows everything that its user did before the query was sent: note_change() numbers
// the user's submissions and cancellations, and the answer has the number of the last one before
// it was sent. What an answer cannot show yet, the user has to remember.
//
// Threads: made, used and destroyed by one thread, next to its own. Errors: read() returns those of
// Slurm; afterwards they are part of the state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

struct SlurmAnswer {
  std::vector<SlurmJob> jobs;  // by id
  std::vector<SlurmNode> nodes;
  uint64_t changes = 0;  // noted before the query was sent
  Instant sent{};        // when the query was sent
};

class SlurmView {
 public:
  static constexpr Duration kPauseAfterFailure = 2s;
  // look() waits no longer for an answer. Most take some hundredths of a second.
  static constexpr Duration kWaitMax = 1s;
  // A query that takes longer counts as not answered.
  static constexpr Duration kQuickMax = 5s;

  // Without a thread, look() and last() query Slurm and wait for the answer.
  SlurmView(std::unique_ptr<Slurm> slurm, Clock& clock, bool own_thread);
  // Interrupts a query that is in progress.
  ~SlurmView();
  SlurmView(const SlurmView&) = delete;

  // Queries Slurm now, and waits for the answer.
  Result<void> read();
  // Has the thread query Slurm, and returns the answer; the last one, if that takes too long, if a
  // former query has no answer yet, or if Slurm is away. Requires: read() has succeeded once.
  // An answer that is not older than `age_max` is returned at once.
  std::shared_ptr<const SlurmAnswer> look(Duration age_max = Duration());
  // Returns the last answer. Requires: as look().
  std::shared_ptr<const SlurmAnswer> last();
  // Returns why Slurm does not answer at present; "": it does.
  std::string why_away() const;
  // Numbers a change that the user has made.
  uint64_t note_change();
  // A failure of another call: Slurm does not answer until the next query is answered.
  void note_away(const std::string& why);

 private:
  void run();
  Result<SlurmAnswer> query(uint64_t changes);
  void keep(Result<SlurmAnswer> answer) REQUIRES(mutex_);

  const std::unique_ptr<Slurm> slurm_;
  Clock& clock_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::shared_ptr<const SlurmAnswer> answer_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds answered_ GUARDED_BY(mutex_){0};
  std::string away_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds querying_since_ GUARDED_BY(mutex_){0};  // 0: no query is in progress
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  // Queries by number: requested, and answered or failed.
  uint64_t requested_ GUARDED_BY(mutex_) = 0, done_ GUARDED_BY(mutex_) = 0;
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // none: the user's queries
};

}  // namespace trainyard::launch
