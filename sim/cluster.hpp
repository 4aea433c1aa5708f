// Cluster is the launcher of a simulation, with the agents that it started: SimulatedLauncher, or
// LocalCluster, which runs the shipped local launcher.
//
// Threads: one. Lifetime: outlives every server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "launch/launcher.hpp"
#include "sim/machine_clock.hpp"
#include "sim/simulated_agent.hpp"
#include "sim/world.hpp"

namespace trainyard::sim {

class Cluster : public launch::Launcher {
 public:
  // A process of the server starts; on error it ends. It may crash.
  virtual Result<void> server_starts() { return {}; }
  // It was killed, perhaps by the end of its machine.
  virtual void server_died() {}
  // Does the launcher's background work.
  virtual void work() {}
  // Describes what is left when no attempt is; "" when nothing is.
  virtual std::string left() { return ""; }

  // Removes a machine that was added, with everything on it.
  virtual void lose_a_machine() {}
  // Ends the hosts of one attempt, as a launcher's scheduler that prefers other work.
  virtual void preempt_one() {}
  // The numbers of machines that were added, and that are coming.
  virtual uint32_t made() const { return 0; }
  virtual uint32_t coming() const { return 0; }

  // Change one agent, chosen at random; without agents they have no effect.
  void kill_one() {
    if (SimulatedAgent* agent = some_agent()) agent->die();
  }
  void suspend_one(Duration lasts, Suspension kind) {
    if (SimulatedAgent* agent = some_agent()) agent->suspend(lasts, kind);
  }
  void set_clock_of_one(Duration by) {
    if (SimulatedAgent* agent = some_agent()) agent->set_clock(by);
  }
  // Returns an attempt that an impostor may claim to be.
  virtual std::optional<domain::AttemptId> any() const = 0;

 private:
  // Returns an agent that lives; nullptr: none does.
  virtual SimulatedAgent* some_agent() = 0;
};

}  // namespace trainyard::sim
