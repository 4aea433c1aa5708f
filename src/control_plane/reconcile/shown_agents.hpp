// Finds what the launcher lists of one attempt.
//
// An agent of which the launcher does not know yet what it serves counts for each host on its
// machine that is not listed: such a host is neither started again nor given up for lost. It can
// only serve attempts that an earlier server placed, so an agent that never reports does not keep
// later ones from their machine.
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
  bool foreign = false;            // agents under another token
  std::vector<std::string> notes;  // by host: the launcher's
};

// `of_former_server`: the attempt was placed before this server began.
Shown shown_of(const domain::Attempt& attempt, domain::AttemptId id,
               const std::vector<launch::Agent>& agents, bool of_former_server = true);

}  // namespace trainyard::reconcile
