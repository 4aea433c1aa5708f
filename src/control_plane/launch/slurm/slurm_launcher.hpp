// Makes a launcher that runs each gang as one Slurm job, pinned to the nodes that the scheduler
// chose, with one agent for each host.
//
// The Slurm job's name and comment (job_comment.hpp) have all that the launcher knows of a gang, so
// a server with an empty memory finds every agent again. An agent counts as alive from the
// submission of its job on, also while the job is pending, until its step or the job ends.
// slurmctld forgets a job some minutes after its end (MinJobAge), and then list() does. A job that
// must not run, because it was removed or is the second one of its attempt, is cancelled at each
// list() until it has ended.
//
// list() queries Slurm, on another thread, and waits for a second at most (slurm_view.hpp); other
// calls read the last answer. Only a submission and a cancellation wait for Slurm. While Slurm does
// not answer, list() and machines() return the state of the last answer; after a minute the notes
// of agents report that their state is unknown, and none is declared dead. ensure() then defers the
// gang: list() shows its agents as alive, and as missing once Slurm answers, so that control
// ensures it again. The same holds for a submission whose answer was lost, until the next answer of
// Slurm shows whether the job exists. make_slurm() fails without a first answer.
//
// Threads: as launcher.hpp; a thread of its own queries Slurm.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "launch/agent_links.hpp"
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
  // Agents report the attempts of their jobs here; nullptr: each job serves one attempt.
  AgentLinks* links = nullptr;
  bool own_thread = true;  // false, for tests: each call reads Slurm's jobs and nodes itself
};

// `reading`: another client of the same Slurm, for the thread that queries it. Lifetime: the clock
// outlives the launcher. Errors: unavailable (Slurm does not answer), invalid (unknown partition),
// denied.
Result<std::unique_ptr<Launcher>> make_slurm(const SlurmSettings& settings,
                                             std::unique_ptr<Slurm> slurm,
                                             std::unique_ptr<Slurm> reading, Clock& clock);

// Returns the part of each node that jobs of this server may use, without nodes that are drained,
// down, or outside the partitions. `own`: the resources of this server's jobs by node. Pure.
std::vector<Machine> machines_of(const std::vector<SlurmNode>& nodes,
                                 const std::vector<std::string>& partitions,
                                 const std::map<std::string, JobComment>& own);

}  // namespace trainyard::launch
