// LocalCluster runs the local launcher (launch/local) over simulated files, processes and networks.
// All hosts are on the machine of the server.
//
// The launcher may die before and after each of its steps and in the middle of a change of a file.
// Its steps fail; its disk is full, fails to write and to read, and loses power, which ends
// everything on the machine. The commands of `doctor --clean` run between two servers.
//
// Checks, by the simulated processes and networks:
//   - the launcher kills a living agent only to remove its attempt, or when the start of its
//     attempt fails;
//   - a living agent keeps its network, its record and its order, and is listed;
//   - once all attempts are removed, no process, network or directory is left.
//
// Host reuse is not simulated: its agents never wait for another attempt.
//
// Threads: one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/local/stepped_launcher.hpp"
#include "launch/testing/memory_machine.hpp"
#include "sim/checkers.hpp"
#include "sim/cluster.hpp"
#include "sim/network.hpp"
#include "sim/simulated_agent.hpp"
#include "sim/simulated_files.hpp"

namespace trainyard::sim {

class LocalCluster final : public Cluster {
 public:
  LocalCluster(World& world, Network& network, Checkers& checkers, Clock& server_clock,
               std::vector<launch::Machine> machines);
  ~LocalCluster() override { halt("at the end"); }

  Result<void> server_starts() override;
  void server_died() override;
  void work() override;
  std::string left() override;

  std::vector<launch::Machine> machines() override { return settings_.machines(); }
  Result<void> ensure(const launch::Gang& gang) override;
  std::vector<launch::Agent> list() override;
  Result<void> remove(domain::AttemptId attempt) override;

  std::optional<domain::AttemptId> any() const override;

 private:
  // One start of an agent, with the process of its job.
  struct Host {
    domain::AttemptId attempt;
    domain::HostIndex index = 0;
    std::string directory, attempt_directory;
    std::set<std::string> network;  // the names of what its network consists of
    std::string machine;
    domain::Share share;
    std::shared_ptr<SimulatedAgent> agent;
    bool counted = true;  // on its machine
    bool lives() const { return agent->alive(); }
    bool over() const { return !agent->alive() && !agent->process_runs(); }
  };

  std::function<bool()> agent_starts(const os::DetachedProgram& program);
  void agents_started();
  // Returns the names in the record of that attempt.
  std::set<std::string> network_of(const std::string& attempt_directory, domain::HostIndex host);
  // Kills the server: from here, until its launcher is destroyed, no change succeeds. Its code goes
  // on without an effect, since its destructors must not throw, and in_launcher() then ends it.
  void halt(const std::string& where);
  void may_die(const std::string& where, uint64_t one_in);
  // As World::check, where the launcher may be in a destructor.
  void check(bool holds, const std::string& what);
  void killed(const launch::MemoryMachine::Process& process);
  void removed(const std::string& name);
  void lose_power();
  // Agents that left say so in their directories.
  void agents_leave();
  void count_ended();
  void check_living(const std::string& when);
  // Calls the launcher, of which `attempt` may end.
  template <class Call>
  auto in_launcher(std::optional<domain::AttemptId> attempt, Call call);
  SimulatedAgent* some_agent() override;

  World& world_;
  Network& network_;
  Checkers& checkers_;
  Clock& server_clock_;
  SimulatedFiles files_;
  launch::MemoryMachine machine_;
  launch::LocalSettings settings_;
  std::unique_ptr<launch::SteppedLauncher> launcher_;  // the current server owns it
  std::optional<domain::AttemptId> may_end_;
  bool in_launcher_ = false, starting_ = false;
  std::string died_;    // where, if it was killed in the launcher
  std::string failed_;  // the first check that failed in the launcher
  std::map<domain::AttemptId, launch::Gang> gangs_;
  std::map<domain::AttemptId, std::shared_ptr<Gang>> in_common_;
  std::vector<std::shared_ptr<Host>> hosts_;  // shared with the queries for their processes
};

}  // namespace trainyard::sim
