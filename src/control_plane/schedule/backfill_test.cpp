// Tests which jobs may start before the first job that waits for machines.
#include "schedule/backfill.hpp"

#include <gtest/gtest.h>

#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

// 8 vCPU; x holds 4 of them for ten more seconds. The first job needs all 8.
Snapshot a_head_that_waits() {
  Snapshot snapshot =
      cluster({machine("box-1", 8)}, {running("training-job/x", "box-1", 4)}, {job(1, 1, 8)});
  snapshot.running[0].ends_by = kNow + 10s;
  return snapshot;
}
WaitingJob lasting(WaitingJob job, Duration lasts) {
  job.lasts_max = lasts;
  return job;
}

TEST(Backfill, TellsTheLatestStartOfTheFirstWaitingJob) {
  const Snapshot snapshot = a_head_that_waits();
  EXPECT_EQ(reason(snapshot, 1),
            "waits for 4 more vCPU on machine box-1 (needs 8, 4 free): held by training-job/x (4)"
            "; starts by 1970-01-01 00:00:10 UTC at the latest");
  EXPECT_EQ(plan(snapshot, {}, kNow).waits[0].starts_by, kNow + 10s);
}

TEST(Backfill, StartsLaterJobsThatEndBeforeTheReservation) {
  Snapshot snapshot = a_head_that_waits();
  snapshot.waiting.push_back(lasting(job(2, 1, 2), 11s));
  snapshot.waiting.push_back(lasting(job(3, 1, 2), 10s));
  snapshot.waiting.push_back(job(4, 1, 1));
  EXPECT_EQ(started(snapshot), Numbers{3});
  EXPECT_EQ(reason(snapshot, 2),
            "waits behind training-job/a, which waits for 4 more vCPU on machine box-1 (needs 8, 4 "
            "free): held by training-job/x (4)");
}

TEST(Backfill, StartsLaterJobsOnCapacityThatTheFirstWillNotNeed) {
  Snapshot snapshot = a_head_that_waits();
  snapshot.machines.push_back(machine("box-2", 8));
  snapshot.running.push_back(running("training-job/y", "box-2", 2));
  snapshot.waiting = {job(1, 1, 8), job(2, 1, 6), job(3, 1, 1)};
  EXPECT_EQ(started(snapshot), Numbers{2}) << "box-1 is reserved for the first job, box-2 is not";
}

TEST(Backfill, KeepsAllUsableMachinesForTheFirstJobIfAnEndIsUnknown) {
  Snapshot snapshot = a_head_that_waits();
  snapshot.running[0].ends_by.reset();
  snapshot.machines.push_back(machine("box-2", 2));
  snapshot.waiting = {job(1, 1, 8), lasting(job(2, 1, 1), 1s), job(3, 1, 2)};
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.starts.size(), 1u);
  EXPECT_EQ(found.starts[0].hosts[0].machine, "box-2") << "the first job could never use it";
  EXPECT_FALSE(found.waits[0].starts_by);
}

TEST(Backfill, ReservesTheEarliestInstantThatFitsAllHostsOfAGang) {
  Snapshot snapshot =
      cluster({machine("box-1", 4), machine("box-2", 4), machine("box-3", 4)}, {}, {job(1, 2, 4)});
  for (const int m : {1, 2, 3}) {
    snapshot.running.push_back(running("training-job/x", "box-" + std::to_string(m), 4));
    snapshot.running.back().ends_by = kNow + 10s * m;
  }
  EXPECT_EQ(plan(snapshot, {}, kNow).waits[0].starts_by, kNow + 20s);
  snapshot.running[1].ends_by.reset();
  EXPECT_EQ(plan(snapshot, {}, kNow).waits[0].starts_by, kNow + 30s);
  snapshot.running[2].ends_by.reset();
  EXPECT_EQ(plan(snapshot, {}, kNow).waits[0].starts_by, std::nullopt);
}

TEST(Backfill, TellsNoLatestStartAfterAnOverdueEnd) {
  Snapshot snapshot = a_head_that_waits();
  snapshot.running[0].ends_by = kNow - 1s;
  snapshot.waiting.push_back(lasting(job(2, 1, 1), 1s));
  const Plan found = plan(snapshot, {}, kNow);
  EXPECT_TRUE(found.starts.empty());
  EXPECT_FALSE(found.waits[0].starts_by);
}

TEST(Backfill, BackfilledJobsDoNotTakeLimitsThatTheFirstJobNeeds) {
  Snapshot snapshot = a_head_that_waits();
  snapshot.machines.push_back(machine("box-2", 7));
  snapshot.limits = {{"consumable resource licences", 2}};
  for (domain::JobNumber number = 2; number < 5; ++number) {
    snapshot.waiting.push_back(job(number, 1, 1));
    snapshot.waiting.back().choices = {{"", {{0, 1}}}};
  }
  snapshot.waiting[0].choices = {{"", {{0, 1}}}};
  snapshot.waiting[3].lasts_max = 10s;
  EXPECT_EQ(started(snapshot), (Numbers{2, 4}))
      << "from then on one licence is reserved for the first job; until then any job may use it";
}

}  // namespace
}  // namespace trainyard::schedule
