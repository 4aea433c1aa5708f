// Makes a launcher that runs each gang as one Slurm job, pinned to the nodes that the scheduler
// chose, with one agent for each host.
//
// The Slurm job's name and comment (job_comment.hpp) have everything that the launcher knows about
// a gang, so that a restarted server finds every agent again. An agent counts as alive from the
// submission of its job until its step or the job ends, even while the job is pending. slurmctld
// lists a job until some minutes after its end (MinJobAge), and so does list(). A job that must not
// run, because it was removed or is the second one of its attempt, is cancelled at each list()
// until it has ended.
//
// list() queries Slurm, on another thread, and waits for a second at most (slurm_view.hpp); other
// calls read the last answer. Jobs are submitted on another thread, too (submissions.hpp): ensure()
// returns at once, list() shows the agents as alive, and a failure is returned by the next call.
// Only a cancellation waits for Slurm. While Slurm does not answer, list() and machines() use its
// last answer; after a minute the notes of agents say that their state is unknown, and none counts
// as dead. A gang to ensure then waits: list() shows its agents as alive, and as missing once Slurm
// answers, so that control ensures it again. The outcome of a submission whose answer was lost is
// read from Slurm's next answer. The launcher is not made without a first answer.
//
// Threads: as launcher.hpp; two more threads read and submit.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "launch/agent_links.hpp"
#include "launch/launcher.hpp"
#include "launch/slurm/job_plan.hpp"
#include "launch/slurm/node_kinds.hpp"
#include "launch/slurm/own_jobs.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

struct SlurmSettings {
  SlurmJobSettings jobs;
  // The nodes that power saving starts and stops on demand; empty: the set of machines is fixed.
  std::vector<SlurmNodeKind> node_kinds = {};
  // Encrypt a token with a seal_context(), and decrypt it. A job whose seal cannot be decrypted
  // belongs to another server.
  std::function<std::string(const std::string& token, const std::string& context)> seal;
  UnsealToken unseal;
  // Returns why this server may not submit and cancel jobs (list() also cancels), if it is not the
  // writer of its ledger; "": it may. Called from any thread.
  std::function<std::string()> why_not = [] { return std::string(); };
  // Agents report the attempts of their jobs here; nullptr: each job runs one attempt.
  AgentLinks* links = nullptr;
  // False, for tests: each call reads Slurm's jobs and nodes itself, and ensure() submits.
  bool own_thread = true;
};

// Clients of the same Slurm, one for each thread.
struct SlurmClients {
  std::unique_ptr<Slurm> cancelling, submitting, reading;
};

// Lifetime: the clock outlives the launcher. Errors: unavailable (Slurm does not answer), invalid
// (a partition that Slurm does not have), denied (also: no jobs can be submitted for an account).
Result<std::unique_ptr<Launcher>> make_slurm(const SlurmSettings& settings, SlurmClients slurm,
                                             Clock& clock);

}  // namespace trainyard::launch
