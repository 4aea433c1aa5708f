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
// calls read the last answer. Jobs are submitted on another thread, too (submissions.hpp): ensure()
// returns at once, list() shows the agents as alive, and a failure is returned by the next call.
// Only a cancellation waits for Slurm. While Slurm does
// not answer, list() and machines() return what the last answer had; after a minute the notes of
// agents say that their state is unknown, and none is declared dead. A gang to ensure then waits:
// list() shows its agents as alive, and as missing once Slurm answers, so that control ensures it
// again. The same holds for a submission whose answer was lost: the next answer of Slurm tells.
// Without a first answer the launcher is not made.
//
// Threads: as launcher.hpp; of its own, one reads and one submits.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "launch/agent_links.hpp"
#include "launch/launcher.hpp"
#include "launch/slurm/job_plan.hpp"
#include "launch/slurm/own_jobs.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

struct SlurmSettings {
  SlurmJobSettings jobs;
  // Encrypt a token with a seal_context(), and decrypt it: a job whose seal does not open is
  // another server's.
  std::function<std::string(const std::string& token, const std::string& context)> seal;
  UnsealToken unseal;
  // Returns "" while this server may submit and cancel jobs, as the writer of its ledger; list()
  // cancels as well.
  // Called from any thread.
  std::function<std::string()> why_not = [] { return std::string(); };
  // Agents report the attempts of their jobs here; nullptr: each job serves one attempt.
  AgentLinks* links = nullptr;
  // False, for tests: each call reads Slurm's jobs and nodes itself, and ensure() submits.
  bool own_thread = true;
};

// Ways to the same Slurm, for one thread each.
struct SlurmClients {
  std::unique_ptr<Slurm> cancelling, submitting, reading;
};

// Lifetime: the clock outlives the launcher. Errors: unavailable (Slurm does not answer), invalid
// (a partition that Slurm does not have), denied (also: no jobs can be submitted for an account).
Result<std::unique_ptr<Launcher>> make_slurm(const SlurmSettings& settings, SlurmClients slurm,
                                             Clock& clock);

}  // namespace trainyard::launch
