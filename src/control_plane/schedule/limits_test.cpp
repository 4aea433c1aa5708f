// Tests limits: vCPU of compute environments and other counted resources.
#include "schedule/limits.hpp"

#include <gtest/gtest.h>

#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

// small has 4 vCPU, large 8; two vCPU of small are used.
Snapshot two_environments() {
  Snapshot snapshot =
      cluster({machine("box-1", 16, 32)}, {running("training-job/x", "box-1", 2)}, {});
  snapshot.limits = {{"vCPU of compute environment small", 4, 0, "raise its maxvCpus"},
                     {"vCPU of compute environment large", 8, 0, "raise its maxvCpus"}};
  snapshot.running[0].needs = {{0, 0, true}};
  return snapshot;
}
WaitingJob queued(domain::JobNumber number, double cpus, const std::vector<size_t>& limits) {
  WaitingJob waiting = job(number, 1, cpus, 1);
  std::vector<Choice> choices;
  for (const size_t limit : limits)
    choices.push_back({limit == 0 ? "small" : "large", {{limit, 0, true}}});
  waiting.choices = Choices(choices);
  return waiting;
}

TEST(Limits, SelectTheFirstEnvironmentWithCapacity) {
  Snapshot snapshot = two_environments();
  snapshot.waiting = {queued(1, 3, {0, 1}), queued(2, 2, {0}), queued(3, 5, {1})};
  const Plan found = plan(snapshot, {}, kNow);
  ASSERT_EQ(found.starts.size(), 3u);
  EXPECT_EQ(found.starts[0].environment, "large");
  EXPECT_EQ(found.starts[1].environment, "small");
  EXPECT_EQ(found.starts[2].environment, "large");
}

TEST(Limits, AWaitingJobDelaysOnlyJobsThatNeedTheSameLimit) {
  Snapshot snapshot = two_environments();
  snapshot.waiting = {queued(1, 9, {0}), queued(2, 3, {0}), queued(3, 1, {0}), queued(4, 1, {0, 1}),
                      job(5, 1, 1)};
  EXPECT_EQ(started(snapshot), (Numbers{4, 5}));
  EXPECT_EQ(reason(snapshot, 1),
            "needs 9 vCPU of compute environment small, which has at most 4: raise its maxvCpus");
  EXPECT_EQ(reason(snapshot, 2),
            "waits for 1 more vCPU of compute environment small (needs 3, 2 of its 4 are used)");
  EXPECT_EQ(reason(snapshot, 3),
            "waits behind training-job/b, which waits for 1 more vCPU of compute environment small "
            "(needs 3, 2 of its 4 are used)");
}

TEST(Limits, SetTheCauseOfAWait) {
  Snapshot snapshot = two_environments();
  for (Limit& limit : snapshot.limits) limit.environments = true;
  snapshot.waiting = {queued(1, 9, {0}), queued(2, 3, {0}), queued(3, 3, {0}),
                      job(4, 1, 99),     job(5, 1, 15),     job(6, 1, 15)};
  std::map<domain::JobNumber, WaitCause> causes;
  for (const Wait& wait : plan(snapshot, {}, kNow).waits) causes[wait.job] = wait.cause;
  EXPECT_EQ(causes, (std::map<domain::JobNumber, WaitCause>{{1, WaitCause::environment},
                                                            {2, WaitCause::other},
                                                            {3, WaitCause::other},
                                                            {4, WaitCause::machine},
                                                            {5, WaitCause::capacity},
                                                            {6, WaitCause::capacity}}));
  snapshot.limits[0].environments = false;
  EXPECT_EQ(plan(snapshot, {}, kNow).waits.front().cause, WaitCause::other)
      << "a licence is not an environment";
}

TEST(Limits, KeepTheReservationOfALimit) {
  Snapshot snapshot = two_environments();
  snapshot.running[0].ends_by = kNow + 10s;
  snapshot.waiting = {queued(1, 3, {0}), queued(2, 1, {0}), queued(3, 1, {0}), queued(4, 1, {0})};
  snapshot.waiting[1].lasts_max = 10s;
  snapshot.waiting[2].lasts_max = 11s;
  EXPECT_EQ(started(snapshot), (Numbers{2, 3}))
      << "the second ends before the reservation; the third takes what is left then; the fourth "
         "can do neither";
}

TEST(Limits, DoNotReturnConsumedAmounts) {
  Snapshot snapshot =
      cluster({machine("box-1", 16)}, {}, {job(1, 1, 1), job(2, 1, 1), job(3, 1, 1)});
  snapshot.limits = {{"consumable resource licences", 4, 1, "raise its total quantity"}};
  snapshot.running = {running("training-job/x", "box-1", 1)};
  snapshot.running[0].needs = {{0, 1}};
  snapshot.running[0].ends_by = kNow + 10s;
  snapshot.waiting[0].choices = {{"", {{0, 3}}}};
  snapshot.waiting[1].choices = {{"", {{0, 1, false, true}}}};
  snapshot.waiting[1].lasts_max = 1s;
  snapshot.waiting[2].choices = {{"", {{0, 1}}}};
  snapshot.waiting[2].lasts_max = 1s;
  EXPECT_EQ(started(snapshot), Numbers{3});
  EXPECT_EQ(reason(snapshot, 1),
            "waits for 1 more of consumable resource licences (needs 3, 2 of its 4 are used); it "
            "is free by 1970-01-01 00:00:10 UTC at the latest");
}

TEST(Limits, MakeEqualJobsWaitBehindTheFirst) {
  Snapshot snapshot = two_environments();
  snapshot.running[0].ends_by = kNow + 10s;
  snapshot.waiting = {queued(1, 4, {0}), queued(2, 4, {0}), queued(3, 4, {0})};
  EXPECT_EQ(started(snapshot), Numbers{});
  const std::string first = reason(snapshot, 1);
  EXPECT_TRUE(first.ends_with("; it is free by 1970-01-01 00:00:10 UTC at the latest")) << first;
  EXPECT_EQ(reason(snapshot, 2), "waits behind training-job/a, which " + first);
  EXPECT_EQ(reason(snapshot, 3), reason(snapshot, 2));
}

}  // namespace
}  // namespace trainyard::schedule
