#include "reconcile/growth_view.hpp"

#include <gtest/gtest.h>

#include "batch/catalog.hpp"

namespace trainyard::reconcile {
namespace {

const Instant kNow = from_milliseconds(1'763'631'900'000);
const launch::MachineKind kLarge{"c5.4xlarge", 16, int64_t{32} << 30, 0, 2, 10};
const launch::MachineKind kGpu{"p3.2xlarge", 8, int64_t{61} << 30, 1, 0, 4};

launch::Machine machine(const std::string& name, const std::string& kind) {
  launch::Machine machine{name, 16, int64_t{32} << 30, 0};
  machine.kind = kind;
  return machine;
}

batch::Catalog catalog_of(double least, double desired, std::vector<std::string> types) {
  batch::Catalog catalog;
  batch::ComputeEnvironment environment;
  environment.key = {"eu-west-1", "e"};
  environment.cpus_max = 64;
  environment.cpus_min = least;
  environment.cpus_desired = desired;
  environment.instance_types = std::move(types);
  put(catalog, batch::ResourceChange::create, environment);
  return catalog;
}

TEST(GrowthView, LimitsTheLaunchersKindsByEnvironments) {
  const std::vector<launch::Machine> machines{machine("a", "c5.4xlarge"), machine("b", ""),
                                              machine("c", "c5.4xlarge")};
  auto catalog = catalog_of(16, 32, {"p3", "c5"});
  const auto kinds = kinds_of({kLarge, kGpu}, machines, &catalog);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].machines, 2u);
  EXPECT_EQ(kinds[0].coming, 2u);
  EXPECT_EQ(kinds[0].cpus_max, 160);
  EXPECT_EQ(kinds[0].cpus_min, 16) << "minvCpus applies to the first kind of the environment";
  EXPECT_EQ(kinds[0].cpus_desired, 32);
  EXPECT_EQ(kinds[1].cpus_min, 0);
  catalog = catalog_of(1000, 0, {"p3.2xlarge"});
  EXPECT_EQ(kinds_of({kLarge, kGpu}, machines, &catalog)[1].cpus_min, 32)
      << "at most the maximum of machines";
  catalog.environments.begin()->second.enabled = false;
  EXPECT_EQ(kinds_of({kLarge, kGpu}, machines, &catalog)[1].cpus_min, 0);
  EXPECT_TRUE(kinds_of({}, machines, &catalog).empty());
}

TEST(GrowthView, DescribesTheMachinesForWhichJobsWait) {
  launch::MachineKind failing = kGpu;
  failing.note = "n2: ResumeTimeout reached";
  EXPECT_EQ(reason_of_growth({kGpu}), "waiting for machines to be added");
  EXPECT_EQ(reason_of_growth({kLarge, failing}),
            "waiting for machines: 2 of kind c5.4xlarge are being added; cannot be added: n2: "
            "ResumeTimeout reached");
  EXPECT_EQ(failed_growth({kLarge}), "");
}

TEST(GrowthView, TellsSinceWhenMachinesAreIdle) {
  const std::vector<launch::Machine> machines{machine("a", "c5.4xlarge"), machine("b", ""),
                                              machine("c", "c5.4xlarge"),
                                              machine("d", "c5.4xlarge")};
  schedule::Snapshot snapshot;
  snapshot.running.push_back({1, "job/a", {{"a", {1, 0, 0}}}});
  schedule::Plan plan;
  plan.starts.push_back({2, {{"d", {1, 0, 0}}}});
  const IdleSince idle =
      idle_since({{"c", kNow - 40s}, {"a", kNow - 50s}}, machines, snapshot, plan, kNow);
  EXPECT_EQ(idle, (IdleSince{{"c", kNow - 40s}})) << "the launcher cannot release b";
  EXPECT_EQ(idle_since({}, machines, snapshot, {}, kNow).at("d"), kNow);
}

}  // namespace
}  // namespace trainyard::reconcile
