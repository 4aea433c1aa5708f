// CompletingJobs tells which jobs have been COMPLETING for so short a time that their agents still
// count as alive.
//
// While a job is COMPLETING, Slurm does not tell whether it was preempted or has failed. It tells
// when the processes have ended on all nodes, which takes some seconds. A node that does not
// respond may hold a job in this state for much longer.
//
// Threads: confined to one. Errors: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "base/time.hpp"
#include "launch/slurm/own_jobs.hpp"

namespace trainyard::launch {

class CompletingJobs {
 public:
  static constexpr Duration kRecent = 30s;

  // `jobs`: all jobs of this server. `now`: monotonic.
  void update(const std::vector<OwnJob>& jobs, std::chrono::nanoseconds now);
  bool is_recent(uint64_t job) const;

 private:
  std::map<uint64_t, std::chrono::nanoseconds> since_;  // by job
  std::chrono::nanoseconds now_{};
};

}  // namespace trainyard::launch
