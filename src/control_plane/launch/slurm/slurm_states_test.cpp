#include "launch/slurm/slurm_states.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

SlurmNode node_in(std::vector<std::string> states) {
  SlurmNode node;
  node.name = node.address = "n1";
  node.states = std::move(states);
  node.partitions = {"train"};
  node.cpus = 16;
  node.memory_mib = 1000;
  node.gpus = 4;
  return node;
}

TEST(SlurmStates, OfferUsableNodesLessTheUseOfOthers) {
  struct Case {
    std::vector<std::string> states;
    bool responds;
    bool usable;
  };
  for (const Case& each : {Case{{"IDLE"}, true, true}, Case{{"MIXED", "PLANNED"}, true, true},
                           Case{{"ALLOCATED"}, true, true}, Case{{"IDLE", "DRAIN"}, true, false},
                           Case{{"DOWN"}, true, false}, Case{{"IDLE"}, false, false},
                           Case{{"IDLE", "MAINT"}, true, false}}) {
    SlurmNode one = node_in(each.states);
    one.responds = each.responds;
    EXPECT_EQ(!machines_of({one}, {}, {}).empty(), each.usable) << each.states.back();
  }
  SlurmNode busy = node_in({"MIXED"});
  busy.cpus_allocated = 6;
  busy.memory_allocated_mib = 500;
  busy.gpus_allocated = 3;
  NodeAmounts ours;
  ours.cpus = 4;
  ours.memory_mib = 200;
  ours.gpus = 2;
  const auto machines = machines_of({busy}, {"train"}, {{"n1", ours}});
  ASSERT_EQ(machines.size(), 1u);
  EXPECT_EQ(machines[0].cpus, 14);
  EXPECT_EQ(machines[0].memory_bytes, int64_t{700} << 20);
  EXPECT_EQ(machines[0].gpus, 3);
  EXPECT_TRUE(machines_of({node_in({"IDLE"})}, {"other"}, {}).empty());
  busy.cpus_allocated = 20;
  EXPECT_TRUE(machines_of({busy}, {}, {}).empty()) << "nothing is left";
}

TEST(SlurmStates, TellJobsThatWaitForNodes) {
  struct Case {
    const char* state;
    const char* reason;
    bool waits;
  };
  for (const Case& each :
       {Case{"PENDING", "Resources", true}, Case{"PENDING", "Priority", true},
        Case{"PENDING", "Nodes required for job are DOWN", true}, Case{"PENDING", "None", false},
        Case{"PENDING", "", false}, Case{"PENDING", "Dependency", false},
        Case{"RUNNING", "Resources", false}, Case{"COMPLETING", "None", false}}) {
    SlurmJob job;
    job.state = each.state;
    job.reason = each.reason;
    EXPECT_EQ(waits_for_nodes(job), each.waits) << each.state << " " << each.reason;
  }
}

}  // namespace
}  // namespace trainyard::launch
