#include "reconcile/shown_agents.hpp"

#include <gtest/gtest.h>

namespace trainyard::reconcile {
namespace {

domain::Attempt attempt_on(const std::vector<std::string>& machines) {
  domain::Attempt attempt;
  attempt.token = "token";
  for (const auto& machine : machines) attempt.hosts.emplace_back().machine = machine;
  return attempt;
}

// Returns an agent of which only the machine is known, not the attempt that it runs.
launch::Agent unknown_agent(const std::string& machine) {
  launch::Agent agent;
  agent.alive = true;
  agent.note = "has not reported";
  agent.unknown_on = machine;
  return agent;
}

TEST(ShownAgents, ListsAgentsOfTheAttemptUnderItsToken) {
  const auto attempt = attempt_on({"n1", "n2"});
  const Shown shown =
      shown_of(attempt, {7, 1}, {{{7, 1}, "token", 1, true}, {{8, 1}, "token", 0, true}});
  EXPECT_EQ(shown.listed, (std::vector<bool>{false, true}));
  EXPECT_EQ(shown.alive, shown.listed);
  EXPECT_FALSE(shown.foreign);
  EXPECT_TRUE(shown_of(attempt, {7, 1}, {{{7, 1}, "another", 0, true}}).foreign);
}

TEST(ShownAgents, CountsAnUnknownAgentForTheUnlistedHostOnItsMachine) {
  const auto attempt = attempt_on({"n1", "n2"});
  const Shown shown =
      shown_of(attempt, {7, 1}, {unknown_agent("n2"), {{7, 1}, "token", 0, false, "dead"}});
  EXPECT_EQ(shown.listed, (std::vector<bool>{true, true}));
  EXPECT_EQ(shown.alive, (std::vector<bool>{false, true}));
  EXPECT_EQ(shown.notes, (std::vector<std::string>{"dead", "has not reported"}));
  EXPECT_FALSE(shown_of(attempt, {7, 1}, {unknown_agent("n3")}).any);
}

TEST(ShownAgents, CountsNoUnknownAgentsForAnAttemptOfThisServer) {
  const auto attempt = attempt_on({"n1"});
  EXPECT_TRUE(shown_of(attempt, {7, 1}, {unknown_agent("n1")}, true).any);
  EXPECT_FALSE(shown_of(attempt, {7, 1}, {unknown_agent("n1")}, false).any);
}

TEST(ShownAgents, CountsNoUnknownAgentsForAnAttemptThatHasEnded) {
  auto attempt = attempt_on({"n1"});
  attempt.state = domain::AttemptState::ended;
  EXPECT_FALSE(shown_of(attempt, {7, 1}, {unknown_agent("n1")}).any);
}

}  // namespace
}  // namespace trainyard::reconcile
