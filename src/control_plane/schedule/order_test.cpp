// Tests the order of jobs across queues.
#include "schedule/order.hpp"

#include <gtest/gtest.h>

#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

TEST(JobOrder, OrdersQueuesByPriorityThenSubmission) {
  Snapshot snapshot =
      cluster({machine("box-1", 4)}, {}, {job(1, 1, 2), job(2, 1, 2), job(3, 1, 2)});
  snapshot.queues = {{"training jobs", 1}, {"job queue urgent", 9}};
  snapshot.waiting[1].queue = snapshot.waiting[2].queue = 1;
  EXPECT_EQ(started(snapshot), (Numbers{2, 3}));
  snapshot.queues[1].priority = 1;
  EXPECT_EQ(started(snapshot), (Numbers{1, 2}));
}

TEST(JobOrder, IsTheOrderOfThePlansWaits) {
  Snapshot snapshot = cluster({machine("box-1", 4)}, {running("training-job/x", "box-1", 4)},
                              {job(1, 1, 1), job(2, 1, 1), job(3, 1, 2)});
  snapshot.queues = {{"training jobs", 1}, {"job queue urgent", 9}};
  snapshot.waiting[2].queue = 1;
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.waits.size(), 3u);
  EXPECT_EQ(found.waits[0].job, 3u);
  EXPECT_EQ(found.waits[1].job, 1u);
  EXPECT_EQ(found.waits[2].job, 2u);
}

TEST(JobOrder, IgnoresPrioritiesOfJobsWithoutShares) {
  Snapshot snapshot = cluster({machine("box-1", 1)}, {}, {job(1, 1, 1), job(2, 1, 1)});
  snapshot.waiting[1].priority = 9;
  EXPECT_EQ(started(snapshot), Numbers{1});
}

}  // namespace
}  // namespace trainyard::schedule
