#include "launch/slurm/power_saving.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "launch/slurm/slurm_launcher.hpp"
#include "launch/testing/memory_slurm.hpp"
#include "launch/testing/plain_seals.hpp"

namespace trainyard::launch {
namespace {

using Names = std::vector<std::string>;
using States = std::vector<std::string>;

SlurmNode cloud_node(const std::string& name, States states) {
  SlurmNode node;
  node.name = node.address = name;
  node.states = std::move(states);
  node.partitions = {"train"};
  node.features = {"c5"};
  node.cpus = 16;
  node.memory_mib = 1000;
  return node;
}

Machine machine(const std::string& name) { return {name, 16, int64_t{1000} << 20, 0}; }

const States kOff = {"IDLE", "CLOUD", "POWERED_DOWN"}, kOn = {"IDLE", "CLOUD"},
             kPoweringUp = {"IDLE", "CLOUD", "POWERING_UP"},
             kPoweringDown = {"IDLE", "CLOUD", "POWERING_DOWN"},
             kFailed = {"DOWN", "CLOUD", "POWERED_DOWN"};

// Records the requests that reach Slurm.
class RecordingSlurm final : public Slurm {
 public:
  Result<std::vector<SlurmJob>> jobs() override { return std::vector<SlurmJob>(); }
  Result<std::vector<SlurmNode>> nodes() override { return std::vector<SlurmNode>(); }
  Result<uint64_t> submit(const SlurmJobRequest&) override { return uint64_t(1); }
  Result<void> cancel(uint64_t, const std::string&) override { return {}; }
  Result<void> power_up(const Names& names) override {
    if (fails) return unavailable("not now");
    up.push_back(names);
    return {};
  }
  Result<void> power_down(const Names& names) override {
    if (fails) return unavailable("not now");
    down.push_back(names);
    return {};
  }
  std::vector<Names> up, down;
  bool fails = false;
};

class PowerSavingTest : public testing::Test {
 protected:
  PowerSaving power(uint32_t nodes_max = 0) {
    return {{{"c5.4xlarge", "c5", nodes_max}}, {"train"}, [this] { return ++changes_; }};
  }
  // An answer to a query that was sent after all changes so far.
  SlurmAnswer answer(std::vector<SlurmNode> nodes) {
    SlurmAnswer answer;
    answer.nodes = std::move(nodes);
    answer.changes = changes_;
    return answer;
  }
  RecordingSlurm slurm_;
  uint64_t changes_ = 0;
};

TEST_F(PowerSavingTest, CountsNodesByTheirPower) {
  PowerSaving saving = power();
  auto other = cloud_node("n9", kOff);
  other.partitions = {"other"};
  auto larger = cloud_node("n3", kOff);
  larger.cpus = 32;
  auto failed = cloud_node("n5", kFailed);
  failed.reason = "ResumeTimeout reached";
  const auto offered =
      saving.offer(answer({cloud_node("n1", kOn), cloud_node("n2", kPoweringUp), larger,
                           cloud_node("n4", kPoweringDown), failed, other}),
                   {machine("n1"), machine("fixed")});
  ASSERT_EQ(offered.size(), 2u);
  EXPECT_EQ(offered[0].kind, "c5.4xlarge");
  EXPECT_EQ(offered[1].kind, "") << "it is of no kind";
  ASSERT_EQ(saving.kinds().size(), 1u);
  const MachineKind kind = saving.kinds()[0];
  EXPECT_EQ(kind.name, "c5.4xlarge");
  EXPECT_EQ(kind.cpus, 16) << "the smallest node's";
  EXPECT_EQ(kind.memory_bytes, int64_t{1000} << 20);
  EXPECT_EQ(kind.coming, 1u);
  EXPECT_EQ(kind.machines_max, 4u) << "all but the failed one and the one outside the partitions";
  EXPECT_EQ(kind.note, "n5: ResumeTimeout reached");
}

TEST_F(PowerSavingTest, PowersUpToTheRequestedNumber) {
  PowerSaving saving = power();
  const std::vector<SlurmNode> nodes = {cloud_node("n1", kOn), cloud_node("n2", kOff),
                                        cloud_node("n3", kOff), cloud_node("n4", kOff)};
  (void)saving.offer(answer(nodes), {machine("n1")});
  const SlurmAnswer old = answer(nodes);
  ASSERT_TRUE(saving.grow(slurm_, "c5.4xlarge", 3));
  EXPECT_EQ(slurm_.up, (std::vector<Names>{{"n2", "n3"}}));
  EXPECT_EQ(saving.kinds()[0].coming, 2u);
  ASSERT_TRUE(saving.grow(slurm_, "c5.4xlarge", 3));
  (void)saving.offer(old, {machine("n1")});
  EXPECT_EQ(saving.kinds()[0].coming, 2u) << "an answer to an earlier query";
  ASSERT_TRUE(saving.grow(slurm_, "c5.4xlarge", 3));
  EXPECT_EQ(slurm_.up.size(), 1u) << "they are coming";
  (void)saving.offer(answer({cloud_node("n1", kOn), cloud_node("n2", kOn),
                             cloud_node("n3", kFailed), cloud_node("n4", kOff)}),
                     {machine("n1"), machine("n2")});
  EXPECT_EQ(saving.kinds()[0].coming, 0u) << "one is there, and one failed";
  ASSERT_TRUE(saving.grow(slurm_, "c5.4xlarge", 3));
  EXPECT_EQ(slurm_.up.back(), Names{"n4"}) << "another one in place of the failed one";
  const auto more = saving.grow(slurm_, "c5.4xlarge", 4);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message,
            "kind c5.4xlarge: 4 nodes are requested, at most 3 can be on: n3: DOWN");
  EXPECT_EQ(saving.grow(slurm_, "c5", 1).error().kind, Kind::not_found);
}

TEST_F(PowerSavingTest, WaitsForNodesThatArePoweringDown) {
  PowerSaving saving = power();
  (void)saving.offer(answer({cloud_node("n1", kPoweringDown)}), {});
  ASSERT_TRUE(saving.grow(slurm_, "c5.4xlarge", 1));
  EXPECT_TRUE(slurm_.up.empty()) << "Slurm ignores the request";
  (void)saving.offer(answer({cloud_node("n1", kOff)}), {});
  ASSERT_TRUE(saving.grow(slurm_, "c5.4xlarge", 1));
  EXPECT_EQ(slurm_.up, std::vector<Names>{{"n1"}});
}

TEST_F(PowerSavingTest, KeepsToTheMaximumOfTheConfig) {
  PowerSaving saving = power(1);
  (void)saving.offer(answer({cloud_node("n1", kOff), cloud_node("n2", kOff)}), {});
  EXPECT_EQ(saving.kinds()[0].machines_max, 1u);
  EXPECT_FALSE(saving.grow(slurm_, "c5.4xlarge", 2));
  EXPECT_EQ(slurm_.up, std::vector<Names>{{"n1"}});
}

TEST_F(PowerSavingTest, PowersDownIdleNodesAndOffersThemNoLonger) {
  PowerSaving saving = power();
  auto busy = cloud_node("n2", {"MIXED", "CLOUD"});
  busy.cpus_allocated = 1;
  const SlurmAnswer before = answer({cloud_node("n1", kOn), busy, cloud_node("n3", kOff)});
  (void)saving.offer(before, {machine("n1"), machine("n2")});
  for (const char* name : {"n1", "n1", "n2", "n3", "fixed"})
    EXPECT_TRUE(saving.shrink(slurm_, name)) << name;
  EXPECT_EQ(slurm_.down, std::vector<Names>{{"n1"}}) << "n2 has a job, and n3 is off";
  const auto offered = saving.offer(before, {machine("n1"), machine("n2")});
  ASSERT_EQ(offered.size(), 1u) << "no host may be placed on it any more";
  EXPECT_EQ(offered[0].name, "n2");
}

TEST_F(PowerSavingTest, RepeatsARequestThatFailed) {
  PowerSaving saving = power();
  (void)saving.offer(answer({cloud_node("n1", kOff), cloud_node("n2", kOn)}), {machine("n2")});
  slurm_.fails = true;
  EXPECT_EQ(saving.grow(slurm_, "c5.4xlarge", 2).error().kind, Kind::unavailable);
  EXPECT_EQ(saving.shrink(slurm_, "n2").error().kind, Kind::unavailable);
  EXPECT_EQ(saving.kinds()[0].coming, 0u);
  slurm_.fails = false;
  EXPECT_TRUE(saving.grow(slurm_, "c5.4xlarge", 2));
  EXPECT_TRUE(saving.shrink(slurm_, "n2"));
  EXPECT_EQ(slurm_.up.size() + slurm_.down.size(), 2u);
}

TEST_F(PowerSavingTest, LeavesNodesThatPowerUpForOthersToThem) {
  PowerSaving saving = power();
  auto theirs = cloud_node("n1", {"ALLOCATED", "CLOUD", "POWERING_UP"});
  theirs.cpus_allocated = 16;
  (void)saving.offer(answer({theirs, cloud_node("n2", kOff)}), {});
  EXPECT_EQ(saving.kinds()[0].coming, 0u);
  ASSERT_TRUE(saving.grow(slurm_, "c5.4xlarge", 1));
  EXPECT_EQ(slurm_.up, std::vector<Names>{{"n2"}});
}

// The launcher, from no nodes to one and back.
TEST(SlurmPower, GrowsAndShrinksTheLaunchersMachines) {
  TestClock clock;
  MemorySlurm slurm;
  SlurmSettings settings;
  settings.own_thread = false;
  settings.jobs.mark = "3fa91c";
  settings.jobs.program_directory = "/opt/trainyard";
  settings.jobs.pool = *networks::parse_subnet("10.201.0.0/16");
  set_plain_seals(settings);
  settings.node_kinds = {{"c5.4xlarge", "c5"}};
  const auto open = [&] {
    return make_slurm(settings, {slurm.client(), slurm.client(), slurm.client()}, clock);
  };
  slurm.nodes = {cloud_node("n1", kOff)};
  slurm.nodes[0].features = {};
  EXPECT_EQ(open().error().kind, Kind::invalid) << "no node has the kind's feature";
  slurm.nodes[0].features = {"c5"};
  auto made = open();
  ASSERT_TRUE(made) << made.error().message;
  Launcher& launcher = **made;
  EXPECT_TRUE(launcher.machines().empty());
  EXPECT_EQ(launcher.kinds().at(0).machines_max, 1u);
  ASSERT_TRUE(launcher.grow("c5.4xlarge", 1));
  EXPECT_TRUE(launcher.machines().empty()) << "nothing is placed on a node that powers up";
  EXPECT_EQ(launcher.kinds().at(0).coming, 1u);
  slurm.nodes[0].states = kOn;
  ASSERT_EQ(launcher.machines().size(), 1u);
  EXPECT_EQ(launcher.machines()[0].kind, "c5.4xlarge");
  EXPECT_EQ(launcher.kinds().at(0).coming, 0u);
  slurm.away = "down";
  (void)launcher.list();
  EXPECT_EQ(launcher.shrink("n1").error().kind, Kind::unavailable);
  slurm.away = "";
  ASSERT_EQ(launcher.machines().size(), 1u);
  ASSERT_TRUE(launcher.shrink("n1"));
  EXPECT_TRUE(launcher.machines().empty());
}

}  // namespace
}  // namespace trainyard::launch
