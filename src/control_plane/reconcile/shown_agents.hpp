// Summarises the agents that the launcher lists of one attempt.
//
// The launcher may not know yet which attempt an agent runs. Such an agent counts for each unlisted
// host on its machine, so that the host is neither started again nor lost. It can only run attempts
// that an earlier server placed; so it does not affect later attempts, even if it never reports.
//
// Threads: pure function.
#pragma once

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
  std::vector<bool> preempted;     // by host
};

// `of_former_server`: the attempt was placed before this server started.
Shown shown_of(const domain::Attempt& attempt, domain::AttemptId id,
               const std::vector<launch::Agent>& agents, bool of_former_server = true);

}  // namespace trainyard::reconcile
