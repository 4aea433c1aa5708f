#include "launch/slurm/node_kinds.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "launch/slurm/answers.hpp"
#include "launch/slurm/rest_answers.hpp"
#include "launch/slurm/slurm_states.hpp"
#include "os/files.hpp"

namespace trainyard::launch {
namespace {

const std::vector<SlurmNodeKind> kKinds = {{"c5.4xlarge", "c5.4xlarge"}, {"any", "rack1"}};

// Recorded from Slurm 22.05.8: three cloud nodes, of which n1 was powered up and down, and n2 did
// not power up in time and was powered up again.
std::vector<SlurmNode> recorded_nodes() {
  const auto text = os::read_file("slurm/testdata/power_nodes.txt");
  EXPECT_TRUE(text);
  const auto nodes = read_nodes(text ? *text : "");
  EXPECT_TRUE(nodes) << nodes.error().message;
  return nodes ? *nodes : std::vector<SlurmNode>();
}

std::string joined(const std::vector<std::string>& states) {
  std::string text;
  for (const std::string& state : states) text += (text.empty() ? "" : "+") + state;
  return text;
}

TEST(NodeKinds, TellHowSlurmPowersNodes) {
  struct Case {
    const char* states;
    NodePower power;
  };
  const std::vector<Case> recorded = {
      {"IDLE+CLOUD+POWERED_DOWN", NodePower::off},
      {"IDLE+CLOUD+POWERED_DOWN", NodePower::off},
      {"IDLE+CLOUD+POWERED_DOWN", NodePower::off},
      {"IDLE+CLOUD+POWER_UP+POWERED_DOWN", NodePower::coming},
      {"IDLE+CLOUD+POWER_UP+POWERED_DOWN", NodePower::coming},
      {"IDLE+CLOUD+NOT_RESPONDING+POWERING_UP", NodePower::coming},
      {"IDLE+CLOUD+NOT_RESPONDING+POWERING_UP", NodePower::coming},
      {"IDLE+CLOUD", NodePower::on},
      {"DOWN+CLOUD+POWERED_DOWN+NOT_RESPONDING", NodePower::failed},
      {"IDLE+CLOUD+POWER_DOWN", NodePower::leaving},
      {"IDLE+CLOUD+POWERING_DOWN", NodePower::leaving},
      {"DOWN+CLOUD+POWER_UP+POWERED_DOWN+NOT_RESPONDING", NodePower::coming},
      {"DOWN+CLOUD+NOT_RESPONDING+POWERING_UP", NodePower::coming},
  };
  const auto nodes = recorded_nodes();
  ASSERT_EQ(nodes.size(), recorded.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(joined(nodes[i].states), recorded[i].states);
    EXPECT_EQ(power_of(nodes[i]), recorded[i].power) << recorded[i].states;
    EXPECT_EQ(is_usable(nodes[i]), recorded[i].power == NodePower::on) << recorded[i].states;
  }
  // As the manual describes them.
  for (const Case& each :
       {Case{"IDLE+CLOUD+DRAIN+POWERED_DOWN", NodePower::failed},
        Case{"IDLE+CLOUD+DRAIN+POWERING_UP", NodePower::failed},
        Case{"IDLE+CLOUD+POWER_UP+POWERING_DOWN", NodePower::coming},
        Case{"MIXED+CLOUD+POWER_DRAIN", NodePower::leaving}, Case{"MIXED+CLOUD", NodePower::on}}) {
    SlurmNode node;
    for (const auto state : split(each.states, '+')) node.states.emplace_back(state);
    EXPECT_EQ(power_of(node), each.power) << each.states;
    EXPECT_EQ(is_usable(node), each.power == NodePower::on) << each.states;
  }
}

// Recorded from slurmrestd 24.11.5: n21 is powered down, and n22 was powered up.
TEST(NodeKinds, ReadTheAnswersOfSlurmrestd) {
  for (const char* version : {"v0.0.40", "v0.0.42"}) {
    const auto text =
        os::read_file("slurm/testdata/power_rest_nodes_" + std::string(version) + ".json");
    ASSERT_TRUE(text);
    const auto nodes = read_rest_nodes(*text);
    ASSERT_TRUE(nodes) << nodes.error().message;
    ASSERT_EQ(nodes->size(), 2u);
    EXPECT_EQ(power_of(nodes->at(0)), NodePower::off);
    EXPECT_EQ(power_of(nodes->at(1)), NodePower::on);
    EXPECT_TRUE(is_usable(nodes->at(1)));
    for (const SlurmNode& node : *nodes)
      EXPECT_EQ(kind_of_node(kKinds, node), kKinds.data()) << version;
  }
}

TEST(NodeKinds, ComeFromTheFeaturesOfNodes) {
  const auto nodes = recorded_nodes();
  EXPECT_EQ(nodes[0].features, (std::vector<std::string>{"rack1", "c5.4xlarge"}));
  EXPECT_EQ(kind_of_node(kKinds, nodes[0]), kKinds.data()) << "the first of its kinds";
  EXPECT_EQ(kind_of_node({{"c5", "c5"}}, nodes[0]), nullptr);
  EXPECT_TRUE(check_node_kinds({{"c5.4xlarge", "c5.4xlarge"}}, nodes));
  const auto missing = check_node_kinds({{"c5.9xlarge", "large"}}, nodes);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Kind::invalid);
  EXPECT_TRUE(missing.error().message.starts_with(
      "Slurm lists no node with the feature 'large' of slurm.node_kinds.\"c5.9xlarge\""))
      << missing.error().message;
}

TEST(NodeKinds, TellWhyNodesDidNotPowerUp) {
  const auto nodes = recorded_nodes();
  EXPECT_EQ(failed_nodes(kKinds, kKinds[0], nodes),
            "n2: ResumeTimeout reached [root@2026-11-30T08:27:51]");
  EXPECT_EQ(failed_nodes(kKinds, kKinds[1], nodes), "") << "its nodes are of the other kind";
  const std::vector<SlurmNode> five(5, nodes[8]);
  EXPECT_TRUE(failed_nodes(kKinds, kKinds[0], five).ends_with("; and 2 more nodes"));
}

}  // namespace
}  // namespace trainyard::launch
