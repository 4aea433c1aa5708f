#include "schedule/fair_share.hpp"

#include <gtest/gtest.h>

#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

Snapshot fair_cluster(double cpus, std::vector<FairShare::Share> shares) {
  Snapshot snapshot = cluster({machine("box-1", cpus)}, {}, {});
  snapshot.queues = {{"job queue q"}};
  snapshot.queues[0].fair = FairShare{std::move(shares), 600s};
  return snapshot;
}
void wait(Snapshot& snapshot, const std::string& share, double cpus, int64_t priority = 0) {
  WaitingJob waiting = job(snapshot.waiting.size() + 1, 1, cpus);
  waiting.share = share;
  waiting.priority = priority;
  snapshot.waiting.push_back(waiting);
}

TEST(FairShare, StartsTheShareWithTheLeastUsageForItsWeight) {
  Snapshot snapshot = fair_cluster(1, {{"a", 1, 100}, {"b", 0.5, 150}});
  wait(snapshot, "a", 1);
  wait(snapshot, "b", 1);
  EXPECT_EQ(started(snapshot), Numbers{2}) << "150 at weight 1/2 is less than 100";
  wait(snapshot, "c", 1);
  EXPECT_EQ(started(snapshot), Numbers{3}) << "a share that is not listed has no usage";
}

TEST(FairShare, CountsStartsOfThePlanAtOnce) {
  Snapshot snapshot = fair_cluster(6, {{"a"}, {"b", 0.5}});
  for (int i = 0; i < 6; ++i) wait(snapshot, "a", 1);
  for (int i = 0; i < 6; ++i) wait(snapshot, "b", 1);
  Numbers numbers = started(snapshot);
  EXPECT_EQ(std::ranges::count_if(numbers, [](auto number) { return number <= 6; }), 2)
      << "share b gets twice as much";
}

TEST(FairShare, CountsRunningJobs) {
  Snapshot snapshot = fair_cluster(3, {});
  snapshot.running = {running("training-job/x", "box-1", 2)};
  snapshot.running[0].queue = 0;
  snapshot.running[0].share = "a";
  wait(snapshot, "a", 1);
  wait(snapshot, "b", 1);
  EXPECT_EQ(started(snapshot), Numbers{2});
}

TEST(FairShare, StartsHigherPrioritiesOfAShareFirst) {
  Snapshot snapshot = fair_cluster(1, {});
  wait(snapshot, "a", 1, 1);
  wait(snapshot, "a", 1, 5);
  EXPECT_EQ(started(snapshot), Numbers{2});
}

// A half is kept while one share is active, a quarter while two are.
TEST(FairShare, KeepsAPartForInactiveShares) {
  Snapshot snapshot = fair_cluster(100, {});
  snapshot.limits = {{"vCPU of compute environment box", 8, 0, "raise its maxvCpus"}};
  snapshot.queues[0].fair->reservation = 0.5;
  snapshot.queues[0].fair->reserves = {0};
  for (int i = 0; i < 8; ++i) wait(snapshot, "a", 1);
  for (WaitingJob& waiting : snapshot.waiting) waiting.choices = {{"box", {{0, 0, true}}}};
  EXPECT_EQ(started(snapshot).size(), 4u);
  EXPECT_EQ(reason(snapshot, 5),
            "waits for 1 more vCPU of compute environment box (needs 1, 4 of its 8 are used and 4 "
            "are kept for shares that are not active)");
  snapshot.waiting[7].share = "b";
  EXPECT_EQ(started(snapshot).size(), 6u);
  snapshot.waiting = {snapshot.waiting[0]};
  snapshot.waiting[0].requests[0].share.cpus = 5;
  EXPECT_EQ(reason(snapshot, 1),
            "needs 5 vCPU of compute environment box, which has at most 8, of which 4 are kept for "
            "shares that are not active: lower the reservation of its scheduling policy");
}

}  // namespace
}  // namespace trainyard::schedule
