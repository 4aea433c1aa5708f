// SimulatedLauncher starts simulated agents on simulated machines, and preempts attempts. In some
// clusters it also adds machines, which may start late, fail to start, or disappear. It owns the
// machines and the agents on them, and outlives every simulated server.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/launcher.hpp"
#include "sim/checkers.hpp"
#include "sim/cluster.hpp"
#include "sim/network.hpp"
#include "sim/simulated_agent.hpp"
#include "sim/world.hpp"
#include "wire/codec.hpp"

namespace trainyard::sim {

class SimulatedLauncher final : public Cluster {
 public:
  SimulatedLauncher(World& world, Network& network, Checkers& checkers,
                    std::vector<launch::Machine> machines)
      : world_(world), network_(network), checkers_(checkers), machines_(std::move(machines)) {
    kind_ = {"c5.2xlarge", 8, int64_t{16} << 30, 0, 0, world_.random.chance(3) ? 4u : 0u};
  }

  std::vector<launch::Machine> machines() override { return machines_; }

  std::vector<launch::MachineKind> kinds() override {
    if (kind_.machines_max == 0) return {};
    return {kind_};
  }

  // Adds machines of a kind until `machines` of them exist or are starting. Each starts after a
  // random time, or never.
  Result<void> grow(const std::string& kind, uint32_t machines) override {
    World::check(kind == kind_.name, "machines of an unknown kind are requested");
    world_.may_crash("before machines are requested");
    if (world_.fault(5)) return unavailable("not now");
    World::check(machines <= kind_.machines_max,
                 "more machines are requested than the maximum of their kind");
    while (made() + kind_.coming < machines) {
      ++kind_.coming;
      world_.trace("launcher", "a machine is starting");
      world_.after(world_.between(1s, 60s), [this] {
        --kind_.coming;
        if (!world_.fault(4)) add_machine();
      });
    }
    world_.may_crash("after machines were requested");
    return {};
  }

  // Removes a machine that was added. Does nothing if it does not exist.
  Result<void> shrink(const std::string& machine) override {
    world_.may_crash("before a machine is released");
    if (world_.fault(5)) return unavailable("not now");
    const auto found = std::ranges::find(machines_, machine, &launch::Machine::name);
    if (found == machines_.end()) return {};
    World::check(!found->kind.empty(), machine + " was not added, but is released");
    checkers_.machine_released(machine);
    world_.trace("launcher", machine + " is released");
    machines_.erase(found);
    world_.may_crash("after a machine was released");
    return {};
  }

  // Ends one of the added machines, with the agents on it.
  void lose_a_machine() override {
    const auto found = std::ranges::find(machines_, kind_.name, &launch::Machine::kind);
    if (found == machines_.end()) return;
    world_.trace("launcher", found->name + " is removed");
    for (auto& [attempt, running] : gangs_)
      for (size_t i = 0; i < running.agents.size(); ++i)
        if (running.agents[i] && running.gang.members[i].machine == found->name &&
            running.agents[i]->alive())
          running.agents[i]->die_with_machine();
    machines_.erase(found);
  }

  void preempt_one() override {
    const SimulatedAgent* agent = some_agent();
    if (agent == nullptr) return;
    for (auto& [attempt, running] : gangs_) {
      if (std::ranges::find(running.agents, agent, &std::shared_ptr<SimulatedAgent>::get) ==
          running.agents.end())
        continue;
      running.preempted = true;
      checkers_.attempt_preempted(attempt);
      const Duration grace = world_.random.chance(2) ? Duration{} : world_.between(1s, 60s);
      for (const auto& each : running.agents)
        if (each) each->preempt(grace);
      return;
    }
  }

  // Returns the number of added machines that exist.
  uint32_t made() const override {
    return uint32_t(std::ranges::count(machines_, kind_.name, &launch::Machine::kind));
  }
  uint32_t coming() const override { return kind_.coming; }

  Result<void> ensure(const launch::Gang& gang) override {
    world_.may_crash("before a gang starts");
    auto found = gangs_.find(gang.attempt);
    // A machine may have disappeared since the plan.
    for (size_t i = 0; i < gang.members.size(); ++i)
      if ((found == gangs_.end() || !found->second.agents[i]) &&
          !is_there(gang.members[i].machine)) {
        checkers_.allow_failure(gang.attempt.job, "its machine was removed");
        return unavailable("machine " + gang.members[i].machine + " does not exist");
      }
    if (found == gangs_.end()) {
      if (world_.fault(15)) {
        if (!world_.random.chance(4)) return unavailable("not now");
        checkers_.allow_failure(gang.attempt.job, "the launcher failed");
        return denied("namespaces are switched off");
      }
      found = gangs_.emplace(gang.attempt, Running{gang, std::make_shared<Gang>(), {}}).first;
      found->second.agents.resize(gang.members.size());
    }
    Running& running = found->second;
    World::check(running.gang.token == gang.token,
                 "attempt " + gang.attempt.text() + " is started under two tokens");
    for (size_t i = 0; i < gang.members.size(); ++i) {
      if (running.agents[i]) continue;
      world_.may_crash("while a gang starts", 40);
      auto order = wire::decode_order(gang.members[i].order);
      World::check(bool(order), "an order cannot be read");
      checkers_.agent_started(gang.members[i].machine, gang.members[i].share);
      running.agents[i] = std::make_shared<SimulatedAgent>(world_, network_, checkers_,
                                                           *std::move(order), running.in_common);
      running.agents[i]->start();
    }
    world_.may_crash("after a gang started");
    return {};
  }

  std::vector<launch::Agent> list() override {
    std::vector<launch::Agent> agents;
    for (const auto& [attempt, running] : gangs_)
      for (size_t i = 0; i < running.agents.size(); ++i) {
        if (!running.agents[i]) continue;
        launch::Agent agent{attempt, running.gang.token, domain::HostIndex(i),
                            running.agents[i]->alive()};
        agent.preempted = running.preempted;
        agents.push_back(std::move(agent));
      }
    return agents;
  }

  Result<void> remove(domain::AttemptId attempt) override {
    world_.may_crash("before an attempt is removed");
    if (world_.fault(5)) return unavailable("busy");
    const auto found = gangs_.find(attempt);
    if (found == gangs_.end()) return {};
    world_.trace("launcher", "removes " + attempt.text());
    checkers_.attempt_removed(attempt);
    for (size_t i = 0; i < found->second.agents.size(); ++i) {
      if (!found->second.agents[i]) continue;
      found->second.agents[i]->remove();
      checkers_.agent_removed(found->second.gang.members[i].machine,
                              found->second.gang.members[i].share);
    }
    gangs_.erase(found);
    world_.may_crash("after an attempt was removed");
    return {};
  }

  // Returns an attempt that an impostor may claim to be.
  std::optional<domain::AttemptId> any() const override {
    if (gangs_.empty()) return std::nullopt;
    return gangs_.begin()->first;
  }

 private:
  struct Running {
    launch::Gang gang;
    std::shared_ptr<Gang> in_common;
    std::vector<std::shared_ptr<SimulatedAgent>> agents;  // shared with their pending events
    bool preempted = false;
  };
  // Returns a random live agent; nullptr if all have ended.
  SimulatedAgent* some_agent() override {
    std::vector<SimulatedAgent*> alive;
    for (const auto& [attempt, running] : gangs_)
      for (const auto& agent : running.agents)
        if (agent && agent->alive()) alive.push_back(agent.get());
    return alive.empty() ? nullptr : alive[world_.random.below(alive.size())];
  }

  bool is_there(const std::string& machine) const {
    return std::ranges::find(machines_, machine, &launch::Machine::name) != machines_.end();
  }

  void add_machine() {
    launch::Machine machine{"cloud-" + std::to_string(++machines_made_), kind_.cpus,
                            kind_.memory_bytes, 0};
    machine.kind = kind_.name;
    world_.trace("launcher", machine.name + " is added");
    checkers_.machine_added(machine);
    machines_.push_back(std::move(machine));
  }

  World& world_;
  Network& network_;
  Checkers& checkers_;
  std::vector<launch::Machine> machines_;
  launch::MachineKind kind_;  // the kind of machine that can be added
  uint64_t machines_made_ = 0;
  std::map<domain::AttemptId, Running> gangs_;
};

}  // namespace trainyard::sim
