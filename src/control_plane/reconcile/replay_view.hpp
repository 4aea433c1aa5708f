// Builds the history that schedule::Replay replays, from the jobs of the ledger and the current
// machines, queues and quotas.
//
// A job that ran when the period began holds its machines. The ledger has no hosts of earlier
// attempts, so a job that was in one of those waits at the begin of the period. The attempts of a
// job become one run with their total time, without the work that an attempt without checkpoints
// lost to a preemption. Jobs that were stopped before they started are left out. A job that depends
// on a whole array depends on the child that ended last.
//
// Threads: confined to one. Errors: none; a job that cannot be read or placed is left out, and
// counted. Lifetime: the snapshot outlives the builder.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "domain/job.hpp"
#include "domain/usage.hpp"
#include "reconcile/reconcile.hpp"
#include "schedule/replay/replay.hpp"

namespace trainyard::reconcile {

struct ReplayPeriod {
  Instant begin, end;
  Instant now;  // running jobs count until now
};

struct ReplayCounts {
  size_t never_started = 0;  // stopped while they waited
  size_t unplaceable = 0;    // their queue or its environments no longer exist
  size_t estimated = 0;      // not started yet: their duration is assumed
  size_t still_running = 0;  // their end is unknown
};

// Usage of shares is counted from this long before the period.
inline constexpr Duration kReplayUsageBefore = 24h;

class ReplayHistoryBuilder {
 public:
  // `settings` provides machines, queues and quotas; its jobs are ignored.
  ReplayHistoryBuilder(const Snapshot& settings, const schedule::Policy& policy,
                       const Timeout& timeout, ReplayPeriod period);

  // Adds a job, in any order. Ignores repeated jobs, jobs of other times, and arrays, whose
  // children are added as jobs.
  void add(domain::Job job);
  size_t jobs() const { return entries_.size(); }
  const ReplayCounts& counts() const { return counts_; }

  // Returns the history. Requires: called once; afterwards only keys() and counts() may be called.
  schedule::ReplayHistory take();
  // Returns the keys of the jobs, in the order of the history.
  const std::vector<domain::JobKey>& keys() const { return keys_; }

 private:
  struct Entry {
    schedule::RecordedJob job;
    domain::JobKey key;
    Instant created;
    domain::JobNumber number = 0;
    std::vector<std::string> after;  // names of jobs
  };

  void add_job(domain::Job job);
  void count_usage(const domain::Job& job);
  void hold(domain::Job job, Instant begin);
  void record_runs(const domain::Job& job, Entry& entry) const;
  void assume_durations(std::vector<Entry*>& ordered);
  void link(std::vector<Entry*>& ordered);

  const Snapshot& settings_;
  const schedule::Policy policy_;
  const Timeout timeout_;
  const ReplayPeriod period_;
  domain::Usages usages_;
  ScheduleView view_;
  std::set<domain::JobNumber> seen_;
  std::vector<Entry> entries_;   // in the order in which they wait in the view
  std::vector<size_t> running_;  // indices in entries_ of the jobs that run in the view
  std::vector<domain::JobKey> keys_;
  ReplayCounts counts_;
};

}  // namespace trainyard::reconcile
