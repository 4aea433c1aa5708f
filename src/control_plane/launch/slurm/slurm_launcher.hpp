// The launcher over Slurm: a gang is one Slurm job, pinned to the nodes that the scheduler chose,
// with one agent for each host.
//
// Its knowledge of a gang is in the Slurm job: its name and comment (job_comment.hpp), so a
// server with an empty memory finds every agent again. An agent counts as alive from the submission
// of its job on, also while the job is pending, until its step or the job ends. slurmctld forgets a
// job some minutes after its end (MinJobAge), and then list() does. A job that must not run,
// because it was removed or is the second one of its attempt, is cancelled at each look until it
// has ended.
//
// list() queries Slurm, on another thread, and waits for a second at most (slurm_view.hpp); other
// calls read the last answer. Only a submission and a cancellation wait for Slurm. While Slurm does
// not answer, list() and machines() return what the last answer had; after a minute the notes of
// agents say that their state is unknown, and none is declared dead. A gang to ensure then waits:
// list() shows its agents as alive, and as missing once Slurm answers, so that control ensures it
// again. The same holds for a submission whose answer was lost: the next answer of Slurm tells.
// Without a first answer the launcher is not made.
//
// Threads: as launcher.hpp; one of its own reads.
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
  // Where agents report what their jobs serve; nullptr: each job serves one attempt.
  AgentLinks* links = nullptr;
  bool own_thread = true;  // false, for tests: each call reads Slurm's jobs and nodes itself
};

// `reading`: another way to the same Slurm, for the thread that reads. Lifetime: the clock outlives
// the launcher. Errors: unavailable (Slurm does not answer), invalid (a partition that Slurm does
// not have), denied.
Result<std::unique_ptr<Launcher>> make_slurm(const SlurmSettings& settings,
                                             std::unique_ptr<Slurm> slurm,
                                             std::unique_ptr<Slurm> reading, Clock& clock);

// The part of a node that jobs of this server may use: nothing if it is drained, down, or outside
// the partitions. `own_*`: what this server's jobs have there. Pure.
std::vector<Machine> machines_of(const std::vector<SlurmNode>& nodes,
                                 const std::vector<std::string>& partitions,
                                 const std::map<std::string, JobComment>& own);

}  // namespace trainyard::launch
