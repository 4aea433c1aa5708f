// Summarises the agents that the launcher lists of one attempt.
//
// The launcher may not know yet which attempt an agent runs. Such an agent counts for each unlisted
// host on its machine, so that the host is neither started again nor lost. It can only run attempts
// that an earlier server placed; so it does not affect later attempts, even if it never reports.
//
// Threads: pure function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "domain/job.hpp"
#include "launch/launcher.hpp"

namespace trainyard::reconcile {

// The agents of one attempt, under its current token.
struct Shown {
  std::vector<bool> listed;  // by host: including dead ones
  std::vector<bool> alive;   // by host
  bool any = false;          // including dead agents
  bool any_alive = false;
  bool foreign = false;            // agents with another token exist
  std::vector<std::string> notes;  // by host: the launcher's message
  std::vector<bool> preempted;     // by host: the launcher's system ends it, or has ended it
};

// `of_former_server`: the attempt was placed before this server started.
Shown shown_of(const domain::Attempt& attempt, domain::AttemptId id,
               const std::vector<launch::Agent>& agents, bool of_former_server = true);

// Returns a host that its job loses by a preemption. A host whose process has ended does not count
// while its agent is alive: it may complete its upload in the time that it has.
std::optional<domain::HostIndex> preempted_host(const domain::Attempt& attempt, const Shown& shown);
// Returns true if no agent was started: such agents have nothing to send, and do not exit.
bool is_unstarted(const domain::Attempt& attempt, const Shown& shown);
// Returns the launcher's message about an attempt that it has not started yet; nullptr: none.
const std::string* note_of_pending(const domain::Attempt& attempt, const Shown& shown);
// Returns where a host runs, with the launcher's message: "on machine n3: Slurm job 7 is
// NODE_FAIL".
std::string place_of(const domain::Attempt& attempt, domain::HostIndex host, const Shown& shown);

}  // namespace trainyard::reconcile
