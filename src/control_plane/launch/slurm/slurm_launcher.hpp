// The launcher over Slurm: a gang is one Slurm job, pinned to the nodes that the scheduler chose,
// with one agent for each host.
//
// What it knows of a gang stands in the Slurm job: its name and comment (job_comment.hpp), so a
// server with an empty memory finds every agent again. An agent counts as alive from the submission
// of its job on, also while the job is pending, until its step or the job ends. slurmctld forgets a
// job some minutes after its end (MinJobAge), and then list() does. A job that must not run,
// because it was removed or is the second one of its attempt, is cancelled at each look until it
// has ended.
//
// While Slurm does not answer, list() and machines() return what they returned last; without that
// the launcher is not made.
//
// Threads: as launcher.hpp.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "launch/launcher.hpp"
#include "launch/slurm/job_plan.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

struct SlurmSettings {
  SlurmJobSettings jobs;
  // Encrypt a token for an attempt, and decrypt it: a job whose seal does not open is another
  // server's.
  std::function<std::string(const std::string& token, const std::string& attempt)> seal;
  std::function<Result<std::string>(const std::string& sealed, const std::string& attempt)> unseal;
  // Returns "" while this server may submit and cancel jobs, as the writer of its ledger; list()
  // cancels as well.
  std::function<std::string()> why_not = [] { return std::string(); };
};

// Errors: unavailable (Slurm does not answer), invalid (a partition that Slurm does not have),
// denied.
Result<std::unique_ptr<Launcher>> make_slurm(const SlurmSettings& settings,
                                             std::unique_ptr<Slurm> slurm);

// The part of a node that jobs of this server may use: nothing if it is drained, down, or outside
// the partitions. `own_*`: what this server's jobs have there. Pure.
std::vector<Machine> machines_of(const std::vector<SlurmNode>& nodes,
                                 const std::vector<std::string>& partitions,
                                 const std::map<std::string, JobComment>& own);

}  // namespace trainyard::launch
