#include "schedule/growth.hpp"

#include <gtest/gtest.h>

#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

// "c5.xlarge x 3, m5.4xlarge x 1"
std::string grown(const Snapshot& snapshot, const std::vector<MachineKind>& kinds,
                  const GrowthPolicy& policy = {}) {
  std::string text;
  for (const Growth::More& more :
       plan_growth(snapshot, plan(snapshot, {}, kNow), kinds, {}, policy, kNow).grow)
    text += (text.empty() ? "" : ", ") + more.kind + " x " + std::to_string(more.count);
  return text;
}
MachineKind kind(const std::string& name, double cpus, double cpus_max) {
  return {.name = name, .total = share(cpus, 4 * cpus), .cpus_max = cpus_max};
}

TEST(Growth, AddsMachinesForWaitingJobs) {
  const Snapshot snapshot =
      cluster({}, {}, {job(1, 1, 3), job(2, 1, 3), job(3, 1, 1), job(4, 1, 1)});
  EXPECT_EQ(grown(snapshot, {kind("small", 4, 100)}), "small x 2");
}

TEST(Growth, AddsTheSmallestKindThatHoldsAHost) {
  const Snapshot snapshot = cluster({}, {}, {job(1, 1, 3), job(2, 1, 12)});
  EXPECT_EQ(grown(snapshot, {kind("large", 16, 100), kind("small", 4, 100)}),
            "large x 1, small x 1");
}

TEST(Growth, TellsWhetherAMachineCouldBeAddedForAJob) {
  std::vector<MachineKind> kinds = {kind("small", 4, 100), kind("large", 16, 8)};
  EXPECT_TRUE(could_be_made(job(1, 9, 4), kinds));
  EXPECT_FALSE(could_be_made(job(1, 1, 5), kinds)) << "no large machine may be added";
  WaitingJob queued = job(1, 1, 4);
  queued.choices = {{"of large ones", {}, {"large"}}};
  EXPECT_FALSE(could_be_made(queued, kinds));
  queued.choices = {{"of large ones", {}, {"large"}}, {"of small ones", {}, {"small"}}};
  EXPECT_TRUE(could_be_made(queued, kinds));
}

TEST(Growth, AddsNoMachinesBeyondTheMaximum) {
  const Snapshot snapshot = cluster({}, {}, {job(1, 1, 4), job(2, 1, 4), job(3, 1, 4)});
  EXPECT_EQ(grown(snapshot, {kind("small", 4, 9)}), "small x 2");
  EXPECT_EQ(grown(snapshot, {kind("small", 4, 100)}, {.coming_max = 1}), "small x 1");
}

TEST(Growth, AddsNoMachinesThatLimitsForbid) {
  Snapshot snapshot = cluster({}, {}, {job(1, 1, 4), job(2, 1, 4), job(3, 1, 4)});
  snapshot.limits = {{"vCPU of compute environment small", 8}};
  for (WaitingJob& waiting : snapshot.waiting) waiting.choices = {{"small", {{0, 0, true}}}};
  EXPECT_EQ(grown(snapshot, {kind("small", 4, 100)}), "small x 2");
}

TEST(Growth, AddsMachinesOfTheEnvironmentsTypes) {
  Snapshot snapshot = cluster({}, {}, {job(1, 1, 4)});
  const std::vector<MachineKind> kinds = {kind("p3.large", 4, 100), kind("c5.large", 8, 100)};
  const auto of_types = [&](std::vector<std::string> types) {
    snapshot.waiting[0].choices = {{"e", {}, std::move(types)}};
    return grown(snapshot, kinds);
  };
  EXPECT_EQ(of_types({}), "p3.large x 1") << "the smallest that holds it";
  EXPECT_EQ(of_types({"optimal"}), "p3.large x 1");
  EXPECT_EQ(of_types({"c5"}), "c5.large x 1");
  EXPECT_EQ(of_types({"m5", "c5.large"}), "c5.large x 1");
  EXPECT_EQ(of_types({"c", "c5.xlarge"}), "");
  snapshot.waiting[0].choices = {{"none", {}, {"m5"}}, {"some", {}, {"c5"}}};
  EXPECT_EQ(grown(snapshot, kinds), "c5.large x 1") << "the queue's next environment allows a kind";
}

TEST(Growth, CountsRequestedMachinesAsPresent) {
  const Snapshot snapshot = cluster({}, {}, {job(1, 1, 4), job(2, 1, 4)});
  std::vector<MachineKind> kinds = {kind("small", 4, 100)};
  kinds[0].coming = 1;
  EXPECT_EQ(grown(snapshot, kinds), "small x 1");
  kinds[0].coming = 2;
  EXPECT_EQ(grown(snapshot, kinds), "");
}

TEST(Growth, AddsNoMachineForAGangThatStaysIncomplete) {
  EXPECT_EQ(grown(cluster({}, {}, {job(1, 4, 4)}), {kind("small", 4, 12)}), "");
  EXPECT_EQ(grown(cluster({}, {}, {job(1, 4, 4), job(2, 3, 4)}), {kind("small", 4, 12)}),
            "small x 3");
  EXPECT_EQ(grown(cluster({machine("box-1", 4)}, {}, {job(1, 4, 4)}), {kind("small", 4, 12)}),
            "small x 3")
      << "free capacity is used first";
}

TEST(Growth, AddsDesiredMachinesWithoutWaitingJobs) {
  std::vector<MachineKind> kinds = {kind("small", 4, 100)};
  kinds[0].cpus_min = 7;
  EXPECT_EQ(grown(cluster({}, {}, {}), kinds), "small x 2");
  kinds[0].cpus_min = 0;
  kinds[0].cpus_desired = 12;
  EXPECT_EQ(grown(cluster({}, {}, {}), kinds), "small x 3");
}

TEST(Growth, ReleasesIdleMachines) {
  const Snapshot snapshot =
      cluster({machine("box-1", 4), machine("box-2", 4), machine("box-3", 4)}, {}, {});
  std::vector<MachineKind> kinds = {kind("small", 4, 100)};
  kinds[0].machines = 3;
  const std::vector<IdleMachine> idle = {{"box-1", "small", kNow - 59s},
                                         {"box-2", "small", kNow - 60s},
                                         {"box-3", "small", kNow - 90s}};
  const auto shrunk = [&](const Snapshot& cluster) {
    return plan_growth(cluster, plan(cluster, {}, kNow), kinds, idle, {}, kNow).shrink;
  };
  EXPECT_EQ(shrunk(snapshot), (std::vector<std::string>{"box-3", "box-2"}));
  kinds[0].cpus_min = 5;
  EXPECT_EQ(shrunk(snapshot), std::vector<std::string>{"box-3"});
  kinds[0].cpus_min = 0;
  Snapshot busy = snapshot;
  busy.waiting = {job(1, 3, 4)};
  EXPECT_TRUE(shrunk(busy).empty()) << "a job starts on them";
}

TEST(Growth, KeepsNoIdleMachineForAGangThatStaysIncomplete) {
  std::vector<MachineKind> kinds = {kind("small", 4, 12)};
  kinds[0].machines = 2;
  const std::vector<IdleMachine> idle = {{"box-1", "small", kNow - 2min},
                                         {"box-2", "small", kNow - 2min}};
  const auto shrunk = [&](std::vector<WaitingJob> waiting) {
    const Snapshot snapshot =
        cluster({machine("box-1", 4), machine("box-2", 4)}, {}, std::move(waiting));
    return plan_growth(snapshot, plan(snapshot, {}, kNow), kinds, idle, {}, kNow).shrink;
  };
  const std::vector<std::string> both = {"box-1", "box-2"};
  EXPECT_TRUE(shrunk({job(1, 3, 4)}).empty()) << "it needs one more machine, which is added";
  EXPECT_EQ(shrunk({job(1, 4, 4)}), both) << "even the maximum of machines is too few";
  WaitingJob choosy = job(1, 2, 4);
  choosy.requests.push_back({"ml.large", share(16), 1});
  choosy.choices = {{"first", {}, {"small"}}, {"second", {}, {"small"}}};
  EXPECT_EQ(shrunk({choosy}), both) << "they have no type of its choices";
}

}  // namespace
}  // namespace trainyard::schedule
