// EndedJobs adds ended jobs that slurmctld no longer lists to its list of jobs, with their end from
// Slurm's accounting.
//
// slurmctld lists an ended job for MinJobAge, five minutes by default. If a server got no answer
// within that time, a job is missing from the list, but the accounting (sacct) has its state, exit
// code and signal. If Slurm has no accounting, this is logged once, and such jobs stay missing.
//
// Threads: confined to one. Errors: none; those of the accounting are logged.
#pragma once

#include <map>
#include <vector>

#include "base/time.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// Returns the jobs of the previous list that had not ended and that the new one lacks. Pure.
std::vector<SlurmJob> forgotten_jobs(const std::vector<SlurmJob>& previous,
                                     const std::vector<SlurmJob>& listed);

class EndedJobs {
 public:
  // A job is added for this time, which is longer than control takes to remove an ended attempt.
  static constexpr Duration kKept = 10min;
  // A job that is missing is listed as before while the accounting does not answer, at most this
  // time.
  static constexpr Duration kAnswerMax = 2min;

  explicit EndedJobs(Clock& clock) : clock_(clock) {}
  // `listed`: all jobs that slurmctld lists now.
  void complete(Slurm& slurm, std::vector<SlurmJob>& listed);

 private:
  struct Forgotten {
    SlurmJob job;
    std::chrono::nanoseconds since{};
  };
  void look_up(Slurm& slurm);

  Clock& clock_;
  bool has_accounting_ = true;
  std::vector<SlurmJob> previous_;
  std::map<uint64_t, Forgotten> unknown_, ended_;  // by job
};

}  // namespace trainyard::launch
