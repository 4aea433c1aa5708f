#include "schedule/kinds.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

std::vector<Queue> some_queues() {
  Queue shared{"job queue q"};
  shared.quota_shares = {{"red", {{"vcpu", 8}}}, {"blue", {{"vcpu", 8}}}};
  return {{"training jobs"}, shared};
}

TEST(Kinds, DifferOnlyByPropertiesThatThePlanReads) {
  const WaitingJob first = job(1, 2, 4, 8);
  const auto alike = [&](WaitingJob other) {
    const Kinds found = kinds_of({first, other}, some_queues());
    return std::pair(found.kind_of[0] == found.kind_of[1], found.shapes.size() == 1);
  };
  WaitingJob other = first;
  other.job = 2;
  other.name = "training-job/other";
  other.lasts_max = 1s;
  other.priority = 7;
  other.share = "someone";
  EXPECT_EQ(alike(other), std::pair(true, true)) << "in a queue without quota shares";
  other.queue = 1;
  EXPECT_EQ(alike(other), std::pair(false, true));
  other = first;
  other.choices = {{"box", {{0, 1}}}};
  EXPECT_EQ(alike(other), std::pair(false, true));
  other = first;
  other.requests[0].count = 3;
  EXPECT_EQ(alike(other), std::pair(false, false));
  other = first;
  other.requests[0].instance_type = "ml.other";
  EXPECT_EQ(alike(other), std::pair(false, false)) << "pending reasons name it";
}

// Other jobs are between them, and the table grows.
TEST(Kinds, GroupJobsThatAreNotAdjacent) {
  SeededRandom random(1);
  std::vector<WaitingJob> waiting;
  for (domain::JobNumber number = 1; number <= 5'000; ++number)
    waiting.push_back(job(number, 1 + uint32_t(random.below(10)), double(random.below(100))));
  const Kinds found = kinds_of(waiting, some_queues());
  EXPECT_LE(found.kinds.size(), 1'000u);
  EXPECT_GT(found.kinds.size(), 900u);
  for (size_t i = 0; i < waiting.size(); ++i) {
    const WaitingJob& like = waiting[found.kinds[found.kind_of[i]].like];
    EXPECT_EQ(like.requests[0].count, waiting[i].requests[0].count);
    EXPECT_EQ(like.requests[0].share.cpus, waiting[i].requests[0].share.cpus);
  }
}

}  // namespace
}  // namespace trainyard::schedule
