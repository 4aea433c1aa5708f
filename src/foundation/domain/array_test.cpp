#include "domain/array.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {
namespace {

Job array_of(uint32_t size) {
  Job job;
  job.number = 40;
  job.key = {"eu-west-1", "4b7d"};
  job.account = "123456789012";
  job.created = job.modified = from_milliseconds(1'000);
  job.transitions = {{Phase::starting, "Starting", job.created, {}}};
  job.spec.groups = {{"default", "1 vCPU, 64 MiB", 1, Share{1, 64 << 20, 0}}};
  job.spec.queue.emplace();
  job.spec.contract = Contract::plain;
  job.spec.display_name = "digits";
  job.spec.queue->name = "quick";
  job.spec.array.size = size;
  return job;
}

TEST(Array, ChildrenHaveTheNextNumbers) {
  const Job array = array_of(3);
  ASSERT_TRUE(array.is_array());
  EXPECT_EQ(last_number_of(array), 43u);
  for (uint32_t index = 0; index < 3; ++index) {
    const Job child = child_of(array, index);
    EXPECT_EQ(child.number, 41 + index);
    EXPECT_EQ(child.key.name, "4b7d:" + std::to_string(index));
    EXPECT_EQ(child.parent, 40u);
    EXPECT_EQ(array_index(child), index);
    EXPECT_FALSE(child.is_array());
    EXPECT_EQ(last_number_of(child), child.number);
    EXPECT_EQ(stage_of(child), Stage::runnable);
    EXPECT_EQ(to_json(child.spec), to_json(array.spec));
    const auto read = job_from_json(to_json(child));
    ASSERT_TRUE(read);
    EXPECT_EQ(to_json(*read), to_json(child));
  }
}

TEST(Array, ComputesTheDependenciesOfAChild) {
  Job array = array_of(3);
  array.spec.array.sequential = true;
  array.awaits_alike = {7, 20};
  using Numbers = std::vector<JobNumber>;
  EXPECT_EQ(child_of(array, 0).awaits, (Numbers{8, 21}));
  EXPECT_EQ(child_of(array, 2).awaits, (Numbers{42, 10, 23}));
  array.awaits = {3};
  EXPECT_EQ(child_of(array, 0).awaits, (Numbers{3, 8, 21})) << "until the whole array may start";
  const auto read = job_from_json(to_json(array));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(array));
}

TEST(Array, ChildrenOfATerminatedArrayFailForItsReason) {
  Job array = array_of(3);
  array.state = JobState::stopping;
  array.cancellation = Cancellation::terminated;
  array.cancellation_reason = "enough";
  array.stop_requested = from_milliseconds(5'000);
  const Job child = child_of(array, 2);
  EXPECT_EQ(stage_of(child), Stage::failed);
  EXPECT_EQ(child.cancellation_reason, "enough");
  EXPECT_EQ(child.modified, from_milliseconds(5'000));
}

TEST(Array, StageShowsThatNoChildRuns) {
  Job array = array_of(2);
  EXPECT_EQ(stage_of(array), Stage::submitted);
  array.awaits = {1};
  EXPECT_EQ(stage_of(array), Stage::pending);
  array.awaits.clear();
  array.state = JobState::active;
  EXPECT_EQ(stage_of(array), Stage::pending);
  array.state = JobState::failed;
  EXPECT_EQ(stage_of(array), Stage::failed);
}

TEST(Array, ParsesNamesOfChildren) {
  const auto name = parse_child_name("4b7d:9999");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->array, "4b7d");
  EXPECT_EQ(name->index, 9999u);
  for (const char* other :
       {"4b7d", "4b7d:", "4b7d:-1", "4b7d:01", "4b7d:10000", "4b7d:1x", "", ":x"})
    EXPECT_FALSE(parse_child_name(other)) << other;
}

}  // namespace
}  // namespace trainyard::domain
