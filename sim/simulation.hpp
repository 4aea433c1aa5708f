// Runs the simulation of one seed: a cluster with its server, launcher, agents, users and faults,
// from an empty ledger to the end of the last job.
//
// The real code runs here: control, the ledger with its tables, the scheduler, the wire codec, and
// the lifecycle of the agent. Time, random numbers, links, processes and the launcher are
// simulated.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainyard::sim {

struct Outcome {
  std::optional<std::string> failure;
  uint64_t events = 0;
  uint64_t crashes = 0;
  uint64_t jobs = 0, completed = 0, failed = 0, stopped = 0;
};

Outcome simulate(uint64_t seed, bool tracing);

}  // namespace trainyard::sim
