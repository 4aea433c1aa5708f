// Tests that quota shares lend, borrow and reclaim.
#include "schedule/quota.hpp"

#include <gtest/gtest.h>

#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

// Shares red and blue own ten each; the machines have capacity for more.
Snapshot red_and_blue() {
  Snapshot snapshot = cluster({machine("box-1", 1'000)}, {}, {});
  QuotaShare red{"red", {{"instances", 10}}}, blue{"blue", {{"instances", 10}}};
  red.lends = red.borrows = blue.lends = blue.borrows = true;
  snapshot.queues = {{"job queue q", 1, {}, {red, blue}}};
  return snapshot;
}
void wait_for_quota(Snapshot& snapshot, const std::string& share, double instances,
                    int64_t priority = 0) {
  WaitingJob waiting = job(snapshot.waiting.size() + 1, 1, 1);
  waiting.share = share;
  waiting.priority = priority;
  waiting.demands = {{"instances", instances}};
  snapshot.waiting.push_back(waiting);
}
void run_in_quota(Snapshot& snapshot, domain::JobNumber number, const std::string& share,
                  double instances, int64_t priority = 0) {
  Running made = running("training-job/" + std::to_string(number), "box-1", 1);
  made.job = number;
  made.queue = 0;
  made.share = share;
  made.priority = priority;
  made.demands = {{"instances", instances}};
  made.gives_way = true;
  made.started = kNow - 1s * int64_t(1'000 - number);  // higher numbers are younger
  snapshot.running.push_back(made);
}

TEST(Quota, LendsAndBorrowsIdleCapacity) {
  Snapshot snapshot = red_and_blue();
  for (const double instances : {10.0, 6.0, 5.0}) wait_for_quota(snapshot, "red", instances);
  EXPECT_EQ(started(snapshot), (Numbers{1, 2}));
  EXPECT_EQ(reason(snapshot, 3),
            "waits for 11 more instances of quota share red (needs 5, 16 of its 10 are used, and "
            "may borrow 10)");
  snapshot.queues[0].quota_shares[1].lends = false;
  EXPECT_EQ(started(snapshot), Numbers{1}) << "share blue does not lend";
  snapshot.queues[0].quota_shares[1].lends = true;
  snapshot.queues[0].quota_shares[0].borrows = false;
  EXPECT_EQ(started(snapshot), Numbers{1}) << "share red does not borrow";
}

TEST(Quota, BorrowsAtMostItsBorrowMax) {
  Snapshot snapshot = red_and_blue();
  snapshot.queues[0].quota_shares[0].borrow_max = 0.5;
  for (const double instances : {10.0, 4.0, 16.0}) wait_for_quota(snapshot, "red", instances);
  EXPECT_EQ(started(snapshot), (Numbers{1, 2}));
  EXPECT_EQ(
      reason(snapshot, 3),
      "needs 16 instances of quota share red, which has 10, and may borrow 5: raise its capacity");
}

TEST(Quota, StartsHigherPrioritiesOfAShareFirst) {
  Snapshot snapshot = red_and_blue();
  snapshot.queues[0].quota_shares[0].borrows = false;
  for (const int64_t priority : {1, 9, 5}) wait_for_quota(snapshot, "red", 5, priority);
  EXPECT_EQ(started(snapshot), (Numbers{2, 3}));
}

TEST(Quota, StartsJobsOnOwnedCapacityBeforeBorrowers) {
  Snapshot snapshot = red_and_blue();
  for (const double instances : {10.0, 5.0}) wait_for_quota(snapshot, "red", instances);
  wait_for_quota(snapshot, "blue", 8);
  EXPECT_EQ(started(snapshot), (Numbers{1, 3}));
}

TEST(Quota, ReservesForTheFirstWaitingJobOfAShare) {
  Snapshot snapshot = red_and_blue();
  for (QuotaShare& share : snapshot.queues[0].quota_shares) share.borrows = false;
  run_in_quota(snapshot, 900, "red", 4);
  wait_for_quota(snapshot, "red", 8);
  wait_for_quota(snapshot, "red", 2);
  wait_for_quota(snapshot, "blue", 2);
  EXPECT_EQ(started(snapshot), Numbers{3});
  EXPECT_TRUE(
      reason(snapshot, 2).starts_with("waits behind training-job/a, which waits for 2 more"));
  snapshot.running[0].ends_by = kNow + 10s;
  snapshot.waiting[1].lasts_max = 10s;
  EXPECT_EQ(started(snapshot), (Numbers{3, 2}))
      << "it ends before the first may start, and is planned after blue's job";
}

TEST(Quota, ReclaimsLentCapacity) {
  Snapshot snapshot = red_and_blue();
  run_in_quota(snapshot, 900, "red", 10);
  run_in_quota(snapshot, 901, "red", 4, 5);
  run_in_quota(snapshot, 902, "red", 3);
  run_in_quota(snapshot, 903, "red", 3);
  wait_for_quota(snapshot, "blue", 2);
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.preemptions.size(), 1u);
  EXPECT_EQ(found.preemptions[0].job, 903u)
      << "the youngest job of the lowest priority; one is enough";
  EXPECT_EQ(found.preemptions[0].reason,
            "training-job/a of quota share blue reclaims what quota share red has borrowed");
  EXPECT_EQ(reason(snapshot, 1), "waits for training-job/903, which is preempted for it");
}

TEST(Quota, PreemptsTheFewestJobs) {
  Snapshot snapshot = red_and_blue();
  run_in_quota(snapshot, 900, "red", 10);
  run_in_quota(snapshot, 901, "red", 6);
  for (domain::JobNumber number : {902, 903, 904, 905}) run_in_quota(snapshot, number, "red", 1);
  wait_for_quota(snapshot, "blue", 6);
  EXPECT_EQ(preempted(snapshot), Numbers{901});
  wait_for_quota(snapshot, "blue", 4);
  EXPECT_EQ(preempted(snapshot), Numbers{901}) << "only the first job of a share preempts";
}

TEST(Quota, PreemptsNoJobsIfEndingJobsSuffice) {
  Snapshot snapshot = red_and_blue();
  run_in_quota(snapshot, 900, "red", 10);
  run_in_quota(snapshot, 901, "red", 10);
  snapshot.running[1].leaving = true;
  wait_for_quota(snapshot, "blue", 10);
  EXPECT_TRUE(preempted(snapshot).empty());
  EXPECT_EQ(reason(snapshot, 1), "waits for jobs that are ending");
  wait_for_quota(snapshot, "red", 1);
  EXPECT_TRUE(started(snapshot).empty()) << "share blue gets what becomes free";
}

TEST(Quota, PreemptsNoJobInVain) {
  Snapshot snapshot = red_and_blue();
  run_in_quota(snapshot, 900, "red", 10);
  run_in_quota(snapshot, 901, "red", 10);
  wait_for_quota(snapshot, "blue", 5);
  EXPECT_EQ(preempted(snapshot), Numbers{901});
  snapshot.running[1].gives_way = false;
  EXPECT_EQ(preempted(snapshot), Numbers{900}) << "any borrower may be preempted";
  snapshot.running[0].gives_way = false;
  EXPECT_TRUE(preempted(snapshot).empty());
  snapshot.running[1].gives_way = true;
  snapshot.limits = {{"consumable resource licences", 1, 1}};
  snapshot.waiting[0].choices = {{"", {{0, 1}}}};
  EXPECT_TRUE(preempted(snapshot).empty()) << "it would still wait for the licence";
}

TEST(Quota, PreemptsLowerPrioritiesOfTheSameShare) {
  Snapshot snapshot = red_and_blue();
  for (QuotaShare& share : snapshot.queues[0].quota_shares) share.borrows = share.lends = false;
  run_in_quota(snapshot, 900, "red", 5, 1);
  run_in_quota(snapshot, 901, "red", 5, 7);
  wait_for_quota(snapshot, "red", 5, 7);
  EXPECT_TRUE(preempted(snapshot).empty());
  snapshot.queues[0].quota_shares[0].preempts_within = true;
  EXPECT_EQ(preempted(snapshot), Numbers{900});
  EXPECT_EQ(plan(snapshot, {}, kNow).preemptions[0].reason,
            "training-job/a of quota share red is more urgent");
  snapshot.waiting[0].priority = 1;
  EXPECT_TRUE(preempted(snapshot).empty()) << "the priorities are equal";
}

TEST(Quota, ABorrowerReclaimsNothing) {
  Snapshot snapshot = red_and_blue();
  snapshot.queues[0].quota_shares.push_back({"green", {{"instances", 10}}, true, true});
  run_in_quota(snapshot, 900, "red", 15);
  run_in_quota(snapshot, 901, "green", 10);
  run_in_quota(snapshot, 902, "green", 5);
  wait_for_quota(snapshot, "blue", 11);
  EXPECT_TRUE(preempted(snapshot).empty());
  EXPECT_TRUE(started(snapshot).empty());
}

}  // namespace
}  // namespace trainyard::schedule
