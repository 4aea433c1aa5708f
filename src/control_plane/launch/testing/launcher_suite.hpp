// LauncherSuite tests the contract of launch/launcher.hpp, which every launcher must pass.
//
// A launcher's test describes a World, in which the launcher runs, and instantiates the suite:
//
//   struct World {
//     // Makes the launcher of a server that starts now and finds what its predecessors left.
//     // Requires: the previous launcher is destroyed.
//     std::unique_ptr<Launcher> server();
//     // Ends an agent, as a crash of its machine does.
//     void end_agent(const Launcher& of, domain::AttemptId attempt, domain::HostIndex host);
//     // Lets ensure() fail after this number of started agents. nullopt: all agents start.
//     void fail_starts_after(std::optional<size_t> agents);
//     // Lets ensure() throw ServerEnded after this number of started agents. nullopt:
//     // no longer.
//     void end_server_after(std::optional<size_t> agents);
//     // Does what the launcher has postponed, such as removing networks.
//     void settle(Launcher& launcher);
//     // Optional: describes what this machine lacks; then the tests are skipped.
//     static std::string missing();
//     // Describes everything that the launcher has made and not removed; "" = nothing is left.
//     std::string left();
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Local, LauncherSuite, World);
//
// machines() of such a launcher has a machine that fits four hosts of a Member's default share.
//
// Threads: confined to the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "launch/launcher.hpp"

namespace trainyard::launch {

// Thrown by a World through the launcher, as if its server was killed at that step.
struct ServerEnded {};

template <class World>
class LauncherSuite : public testing::Test {
 protected:
  void SetUp() override {
    if constexpr (requires { World::missing(); })
      if (const std::string missing = World::missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  Gang gang(Launcher& launcher, uint64_t job, size_t hosts) {
    Gang gang;
    gang.attempt = {job, 1};
    gang.token = "token" + std::to_string(job);
    for (size_t host = 0; host < hosts; ++host)
      gang.members.push_back({{launcher.machines().at(0).name, {}}, "order"});
    return gang;
  }
  static size_t alive(Launcher& launcher) {
    const auto agents = launcher.list();
    return size_t(std::ranges::count_if(agents, &Agent::alive));
  }
  void remove_all(Launcher& launcher) {
    for (const Agent& agent : launcher.list()) EXPECT_TRUE(launcher.remove(agent.attempt));
    world_.settle(launcher);
    EXPECT_TRUE(launcher.list().empty());
    EXPECT_EQ(world_.left(), "");
  }

  World world_;
};

TYPED_TEST_SUITE_P(LauncherSuite);

TYPED_TEST_P(LauncherSuite, OffersMachinesWithNamesAndCapacity) {
  const auto launcher = this->world_.server();
  std::set<std::string> names;
  for (const Machine& machine : launcher->machines()) {
    EXPECT_TRUE(names.insert(machine.name).second) << machine.name << " is listed twice";
    EXPECT_GT(machine.cpus, 0);
    EXPECT_GT(machine.memory_bytes, 0);
  }
  EXPECT_FALSE(names.empty());
}

TYPED_TEST_P(LauncherSuite, StartsAGangOnceAndRemovesItWhole) {
  const auto launcher = this->world_.server();
  const Gang gang = this->gang(*launcher, 1, 2);
  for (int call = 0; call < 2; ++call) {
    const auto started = launcher->ensure(gang);
    ASSERT_TRUE(started) << started.error().message;
    const auto agents = launcher->list();
    ASSERT_EQ(agents.size(), 2u);
    for (const Agent& agent : agents) {
      EXPECT_EQ(agent.attempt, gang.attempt);
      EXPECT_EQ(agent.token, gang.token);
      EXPECT_TRUE(agent.alive);
    }
    EXPECT_EQ(agents[0].host + agents[1].host, 1u);
  }
  for (int call = 0; call < 2; ++call) ASSERT_TRUE(launcher->remove(gang.attempt));
  this->remove_all(*launcher);
}

TYPED_TEST_P(LauncherSuite, KeepsGangsApart) {
  const auto launcher = this->world_.server();
  ASSERT_TRUE(launcher->ensure(this->gang(*launcher, 1, 1)));
  ASSERT_TRUE(launcher->ensure(this->gang(*launcher, 2, 1)));
  ASSERT_TRUE(launcher->remove({1, 1}));
  this->world_.settle(*launcher);
  ASSERT_EQ(launcher->list().size(), 1u);
  EXPECT_EQ(launcher->list()[0].attempt, (domain::AttemptId{2, 1}));
  EXPECT_EQ(this->alive(*launcher), 1u);
  this->remove_all(*launcher);
}

TYPED_TEST_P(LauncherSuite, RemovesAnUnknownAttemptWithoutAnError) {
  EXPECT_TRUE(this->world_.server()->remove({7, 1}));
}

TYPED_TEST_P(LauncherSuite, StartsAgainAfterRemoval) {
  const auto launcher = this->world_.server();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(launcher->ensure(this->gang(*launcher, 1, 1)));
    ASSERT_TRUE(launcher->remove({1, 1}));
  }
  this->remove_all(*launcher);
}

TYPED_TEST_P(LauncherSuite, FindsAgentsOfAPreviousServer) {
  auto launcher = this->world_.server();
  const Gang gang = this->gang(*launcher, 1, 2);
  ASSERT_TRUE(launcher->ensure(gang));
  launcher.reset();
  launcher = this->world_.server();
  EXPECT_EQ(this->alive(*launcher), 2u);
  for (const Agent& agent : launcher->list()) EXPECT_EQ(agent.token, gang.token);
  ASSERT_TRUE(launcher->ensure(gang));
  EXPECT_EQ(launcher->list().size(), 2u);
  this->remove_all(*launcher);
}

TYPED_TEST_P(LauncherSuite, LeavesADeadAgentDead) {
  auto launcher = this->world_.server();
  const Gang gang = this->gang(*launcher, 1, 2);
  ASSERT_TRUE(launcher->ensure(gang));
  this->world_.end_agent(*launcher, gang.attempt, 0);
  EXPECT_EQ(this->alive(*launcher), 1u);
  ASSERT_TRUE(launcher->ensure(gang));
  EXPECT_EQ(this->alive(*launcher), 1u) << "ensure() has started it again";
  launcher.reset();
  launcher = this->world_.server();
  ASSERT_EQ(launcher->list().size(), 2u) << "control decides by the dead agent";
  EXPECT_EQ(this->alive(*launcher), 1u);
  this->remove_all(*launcher);
}

TYPED_TEST_P(LauncherSuite, LeavesNothingWhenAStartFails) {
  const auto launcher = this->world_.server();
  for (size_t agents = 0; agents < 2; ++agents) {
    this->world_.fail_starts_after(agents);
    EXPECT_FALSE(launcher->ensure(this->gang(*launcher, 1, 2)));
    this->world_.settle(*launcher);
    EXPECT_TRUE(launcher->list().empty());
    EXPECT_EQ(this->world_.left(), "") << "after " << agents << " agents";
  }
  this->world_.fail_starts_after(std::nullopt);
  ASSERT_TRUE(launcher->ensure(this->gang(*launcher, 1, 2)));
  this->remove_all(*launcher);
}

TYPED_TEST_P(LauncherSuite, CompletesAnInterruptedStart) {
  for (size_t agents = 0; agents < 2; ++agents) {
    auto launcher = this->world_.server();
    const Gang gang = this->gang(*launcher, 1, 2);
    this->world_.end_server_after(agents);
    EXPECT_THROW((void)launcher->ensure(gang), ServerEnded);
    launcher.reset();
    this->world_.end_server_after(std::nullopt);
    launcher = this->world_.server();
    EXPECT_LE(this->alive(*launcher), agents);
    const auto started = launcher->ensure(gang);
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_EQ(launcher->list().size(), 2u);
    EXPECT_EQ(this->alive(*launcher), 2u);
    this->remove_all(*launcher);
  }
}

TYPED_TEST_P(LauncherSuite, RemovesAnInterruptedStart) {
  for (size_t agents = 0; agents < 2; ++agents) {
    auto launcher = this->world_.server();
    const Gang gang = this->gang(*launcher, 1, 2);
    this->world_.end_server_after(agents);
    EXPECT_THROW((void)launcher->ensure(gang), ServerEnded);
    launcher.reset();
    this->world_.end_server_after(std::nullopt);
    launcher = this->world_.server();
    ASSERT_TRUE(launcher->remove(gang.attempt));
    this->remove_all(*launcher);
  }
}

TYPED_TEST_P(LauncherSuite, RejectsAGangThatDiffersFromTheRunningOne) {
  const auto launcher = this->world_.server();
  ASSERT_TRUE(launcher->ensure(this->gang(*launcher, 1, 1)));
  Gang other = this->gang(*launcher, 1, 1);
  other.token = "another";
  const auto with_another_token = launcher->ensure(other);
  ASSERT_FALSE(with_another_token);
  EXPECT_EQ(with_another_token.error().kind, Kind::conflict);
  const auto with_more_hosts = launcher->ensure(this->gang(*launcher, 1, 2));
  ASSERT_FALSE(with_more_hosts);
  EXPECT_EQ(with_more_hosts.error().kind, Kind::conflict);
  EXPECT_EQ(this->alive(*launcher), 1u);
  this->remove_all(*launcher);
}

TYPED_TEST_P(LauncherSuite, ReusesNoHostOfABusyAgent) {
  const auto launcher = this->world_.server();
  ASSERT_TRUE(launcher->ensure(this->gang(*launcher, 1, 1)));
  const auto reused = launcher->reuse_host({1, 1}, this->gang(*launcher, 2, 1));
  ASSERT_TRUE(reused) << reused.error().message;
  EXPECT_FALSE(*reused);
  ASSERT_EQ(launcher->list().size(), 1u);
  EXPECT_EQ(launcher->list()[0].attempt, (domain::AttemptId{1, 1}));
  this->remove_all(*launcher);
}

TYPED_TEST_P(LauncherSuite, RejectsAnUnknownKindOfMachine) {
  const auto launcher = this->world_.server();
  const auto grown = launcher->grow("no-such-kind", 1);
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().kind, Kind::not_found);
  EXPECT_TRUE(launcher->shrink("no-such-machine"));
}

REGISTER_TYPED_TEST_SUITE_P(LauncherSuite, OffersMachinesWithNamesAndCapacity,
                            StartsAGangOnceAndRemovesItWhole, KeepsGangsApart,
                            RemovesAnUnknownAttemptWithoutAnError, StartsAgainAfterRemoval,
                            FindsAgentsOfAPreviousServer, LeavesADeadAgentDead,
                            LeavesNothingWhenAStartFails, CompletesAnInterruptedStart,
                            RemovesAnInterruptedStart, RejectsAGangThatDiffersFromTheRunningOne,
                            ReusesNoHostOfABusyAgent, RejectsAnUnknownKindOfMachine);

}  // namespace trainyard::launch
