// Tests that machines are added for waiting jobs and released after them.
#include "control/testing/test_batch.hpp"

namespace trainyard::control {
namespace {

using domain::HostState;
using test::BatchCluster;

// Two hosts, each of a whole machine.
CreateJob whole_machines(const std::string& id) {
  CreateJob job = BatchCluster::batch_job(id, 4);
  job.spec.groups[0].count = 2;
  return job;
}

launch::Machine added(const std::string& name) {
  launch::Machine machine{name, 4, int64_t{8} << 30, 0};
  machine.kind = "c5.xlarge";
  return machine;
}

TEST(Resizing, BillsNothingBeforeAllMachinesOfAGangExist) {
  BatchCluster cluster;
  cluster.launcher.the_machines.clear();
  cluster.launcher.the_kinds = {{"c5.xlarge", 4, int64_t{8} << 30, 0, 0, 2}};
  cluster.add_environment("large", 8);
  cluster.add_queue("gangs", {"large"}, 1);
  CreateJob job = whole_machines("a");
  job.spec.queue->name = "gangs";
  ASSERT_TRUE(cluster.create(job));
  EXPECT_EQ(cluster.launcher.grown, (std::map<std::string, uint32_t>{{"c5.xlarge", 2}}));
  cluster.launcher.the_kinds[0].coming = 2;
  cluster.clock.advance(10min);
  cluster.run();
  EXPECT_EQ(cluster.status("a"), "RUNNABLE");
  EXPECT_EQ(
      cluster.find("a")->wait_reason,
      "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - waiting for machines: 2 of kind c5.xlarge are "
      "being added")
      << "the code stands before the reason after ten minutes";
  cluster.launcher.the_machines = {added("m1")};
  cluster.launcher.the_kinds[0].coming = 1;
  cluster.clock.advance(10min);
  cluster.run();
  EXPECT_EQ(cluster.status("a"), "RUNNABLE") << "one of two machines exists";
  EXPECT_TRUE(cluster.launcher.released.empty()) << "it is kept for the gang";
  cluster.launcher.the_machines.push_back(added("m2"));
  cluster.launcher.the_kinds[0].coming = 0;
  cluster.run();
  cluster.walk("a", 0, HostState::running);
  cluster.walk("a", 1, HostState::running);
  EXPECT_EQ(cluster.find("a")->ran(cluster.clock.now()), Duration{}) << "of twenty minutes";
  cluster.clock.advance(5s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->ran(cluster.clock.now()), 5s);
}

TEST(Resizing, ReleasesMachinesThatHaveBeenIdleDownToTheMinimum) {
  BatchCluster cluster;
  cluster.launcher.the_machines = {added("m1"), added("m2")};
  cluster.launcher.the_kinds = {{"c5.xlarge", 4, int64_t{8} << 30, 0, 0, 2}};
  batch::ComputeEnvironment environment;
  environment.key = {test::kRegion, "one"};
  environment.cpus_max = 8;
  environment.cpus_min = 4;
  ASSERT_TRUE(cluster.change(batch::ResourceChange::create, environment));
  cluster.run();
  EXPECT_TRUE(cluster.launcher.released.empty());
  cluster.clock.advance(61s);
  cluster.run();
  EXPECT_EQ(cluster.launcher.released, std::set<std::string>{"m1"});
}

}  // namespace
}  // namespace trainyard::control
