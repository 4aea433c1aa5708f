#include "launch/slurm/allocations.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

SlurmJobRequest request() {
  SlurmJobRequest request;
  request.placement.partition = "train";
  request.placement.account = "lab";
  request.per_node.cpus = 2;
  request.per_node.memory_mib = 100;
  return request;
}

TEST(AllocationKind, DiffersOnlyBySettingsThatSlurmDistinguishes) {
  const std::string kind = allocation_kind(request(), "ana");
  EXPECT_EQ(kind.size(), 16u);
  EXPECT_EQ(kind, allocation_kind(request(), "ana"));
  std::vector<SlurmJobRequest> others(7, request());
  others[0].placement.account = "physics";
  others[1].placement.qos = "high";
  others[2].placement.licenses = "solver:1";
  others[3].placement.exclusive = true;
  others[4].per_node.cpus = 3;
  others[5].per_node.memory_mib = 101;
  others[6].per_node.gpus = 1;
  for (const auto& other : others) EXPECT_NE(allocation_kind(other, "ana"), kind);
  EXPECT_NE(allocation_kind(request(), "bob"), kind);
  // Fields do not run together.
  SlurmJobRequest moved = request();
  moved.placement.partition = "trainlab";
  moved.placement.account = "";
  EXPECT_NE(allocation_kind(moved, "ana"), kind);
  // Fields that differ between attempts are ignored.
  SlurmJobRequest named = request();
  named.name = "another";
  named.time_limit_minutes = 7;
  EXPECT_EQ(allocation_kind(named, "ana"), kind);
}

TEST(ChooseAllocation, TakesTheOneWithTheLeastTimeThatSuffices) {
  const std::vector<IdleAllocation> idle{{1, "n1", "a", 60min, 0s},
                                         {2, "n1", "a", 20min, 0s},
                                         {3, "n1", "a", 5min, 0s},
                                         {4, "n2", "a", 15min, 0s},
                                         {5, "n1", "b", 15min, 0s}};
  EXPECT_EQ(choose_allocation(idle, {"n1", "a", 10min}), 2u);
  EXPECT_EQ(choose_allocation(idle, {"n1", "a", 30min}), 1u);
  EXPECT_EQ(choose_allocation(idle, {"n1", "a", 61min}), std::nullopt);
  EXPECT_EQ(choose_allocation(idle, {"n2", "a", 15min}), 4u);
  EXPECT_EQ(choose_allocation(idle, {"n2", "b", 1min}), std::nullopt);
  EXPECT_EQ(choose_allocation(idle, {"n3", "a", 1min}), std::nullopt);
  EXPECT_EQ(choose_allocation({}, {"n1", "a", 1min}), std::nullopt);
}

TEST(AllocationsToRelease, GiveWayOnTheNodesOfPendingJobs) {
  const std::vector<IdleAllocation> idle{
      {1, "n1", "a", 60min, 2s}, {2, "n1", "a", 20min, 100ms}, {3, "n2", "a", 5min, 3s}};
  EXPECT_EQ(allocations_to_release(idle, {}, 1s), std::vector<uint64_t>{});
  EXPECT_EQ(allocations_to_release(idle, {"n1"}, 1s), std::vector<uint64_t>{1});
  EXPECT_EQ(allocations_to_release(idle, {"*"}, 1s), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(allocations_to_release(idle, {"*"}, 0s), (std::vector<uint64_t>{1, 2, 3}));
}

}  // namespace
}  // namespace trainyard::launch
