// SlurmView caches Slurm's last answer about its jobs and nodes. Its thread queries Slurm, so that
// the caller waits for a second at most while slurmctld is busy or down for minutes.
//
// An answer shows all changes that were made before its query was sent: note_change() numbers the
// caller's submissions and cancellations, and the answer has the number of the last one before the
// query. The caller must remember later changes itself.
//
// Threads: confined to one, in addition to its own. Errors: read() returns those of Slurm; other
// calls keep them in why_away().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "launch/slurm/ended_jobs.hpp"
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
  // The longest wait of query_now(). Most answers take some hundredths of a second.
  static constexpr Duration kWaitMax = 1s;
  // A query that takes longer counts as not answered.
  static constexpr Duration kQuickMax = 5s;

  // Without a thread, query_now() and last() query Slurm and wait for the answer.
  SlurmView(std::unique_ptr<Slurm> slurm, Clock& clock, bool own_thread);
  // Interrupts a query that is in progress.
  ~SlurmView();
  SlurmView(const SlurmView&) = delete;

  // Queries Slurm now, and waits for the answer.
  Result<void> read();
  // Lets the thread query Slurm, and returns the answer. Returns the last answer if that takes too
  // long, an earlier query has no answer yet, or Slurm does not answer. Requires: read() has
  // succeeded.
  std::shared_ptr<const SlurmAnswer> query_now();
  // Lets the thread query Slurm if the last answer is older than `age_max`, and returns the last
  // answer at once. Requires: as query_now().
  std::shared_ptr<const SlurmAnswer> refresh(Duration age_max);
  // Returns the last answer. Requires: as query_now().
  std::shared_ptr<const SlurmAnswer> last();
  // Returns the reason why Slurm does not answer at present, or "" if it does.
  std::string why_away() const;
  // Numbers a change that the caller has made.
  uint64_t note_change();
  // Records that another call failed: Slurm counts as not answering until a query is answered.
  void note_away(const std::string& why);

 private:
  void run();
  Result<SlurmAnswer> query(uint64_t changes);
  void keep(Result<SlurmAnswer> answer) REQUIRES(mutex_);

  const std::unique_ptr<Slurm> slurm_;
  Clock& clock_;
  EndedJobs ended_;  // used by the querying thread only
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
  std::thread thread_;  // none: the caller's thread queries
};

}  // namespace trainyard::launch
