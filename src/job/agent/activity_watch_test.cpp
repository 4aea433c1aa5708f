#include "agent/activity_watch.hpp"

#include <gtest/gtest.h>

namespace trainyard::agent {
namespace {

TEST(ActivityWatch, ReportsTheTimeSinceEachLastChange) {
  ActivityWatch watch;
  EXPECT_FALSE(watch.update(0, {}, 1s)) << "nothing has happened";
  auto report = watch.update(10, {}, 2s);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->output, Duration(0s));
  EXPECT_TRUE(report->ranks.empty());

  EXPECT_FALSE(watch.update(20, {{4, 7, 0, 0}}, 3s)) << "too soon after the first";
  report = watch.update(20, {{4, 9, 5, 0}}, 8s);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->output, Duration(5s));
  ASSERT_EQ(report->ranks.size(), 1u);
  EXPECT_EQ(report->ranks[0].rank, 3u);
  EXPECT_EQ(report->ranks[0].collectives, 9u);
  EXPECT_EQ(report->ranks[0].collective, Duration(0s));
  EXPECT_EQ(report->ranks[0].output, Duration(0s));

  EXPECT_FALSE(watch.update(20, {{4, 9, 5, 0}}, 60s)) << "a host that does nothing reports nothing";
  watch.forget_report();
  report = watch.update(20, {{4, 9, 5, 0}}, 68s);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->output, Duration(65s));
  EXPECT_EQ(report->ranks[0].collective, Duration(60s));
}

TEST(ActivityWatch, ReportsNoTimeForEventsThatNeverHappened) {
  ActivityWatch watch;
  const auto report = watch.update(0, {{1, 0, 0, 0}}, 1s);
  ASSERT_TRUE(report) << "there is a rank";
  EXPECT_FALSE(report->output);
  ASSERT_EQ(report->ranks.size(), 1u);
  EXPECT_FALSE(report->ranks[0].output);
  EXPECT_FALSE(report->ranks[0].collective);
}

TEST(ActivityWatch, ForgetsRanksThatLeaveTheTable) {
  ActivityWatch watch;
  ASSERT_EQ(watch.update(0, {{1, 1, 0, 0}, {2, 1, 0, 0}}, 1s)->ranks.size(), 2u);
  ASSERT_EQ(watch.update(1, {{2, 1, 0, 0}}, 10s)->ranks.size(), 1u);
}

RankRecord record(uint64_t completed, CallKind kind, uint64_t beats) {
  RankRecord record;
  record.rank = 3;
  record.calls.writer = 1;
  record.calls.group = 9;
  record.calls.rank = 1;
  record.calls.ranks = 4;
  record.calls.completed = completed;
  record.calls.kind = uint64_t(kind);
  record.calls.beats = beats;
  record.calls.inside_ns = 5'000'000;
  record.calls.links[0] = {3, 7'000, 5};
  return record;
}

TEST(ActivityWatch, ReportsHowLongARankHasBeenInItsCall) {
  ActivityWatch watch;
  const auto update = [&](std::chrono::nanoseconds now, const RankRecord& calls) {
    return watch.update(0, {}, now, {calls}, std::chrono::nanoseconds(0));
  };
  auto report = update(10s, record(5, CallKind::none, 0));
  ASSERT_TRUE(report);
  ASSERT_EQ(report->calls.size(), 1u);
  EXPECT_EQ(report->calls[0].rank, 3u);
  EXPECT_EQ(report->calls[0].group_rank, 1u);
  EXPECT_EQ(report->calls[0].inside_us, 5'000u);
  ASSERT_EQ(report->calls[0].links.size(), 1u);
  EXPECT_EQ(report->calls[0].links[0].peer, 2u);
  EXPECT_EQ(report->calls[0].links[0].busy_us, 7u);
  EXPECT_EQ(report->calls[0].links[0].busy_bytes, 5u);
  report = update(13s, record(5, CallKind::none, 0));
  ASSERT_TRUE(report) << "also outside of calls";
  EXPECT_EQ(report->calls[0].unchanged, Duration(3s));

  report = update(15s, record(5, CallKind::allreduce, 1));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->calls[0].unchanged, Duration(0s));
  EXPECT_FALSE(update(16s, record(5, CallKind::allreduce, 2))) << "too soon";
  report = update(18s, record(5, CallKind::allreduce, 3));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->calls[0].unchanged, Duration(3s));
  EXPECT_EQ(report->calls[0].since_beat, Duration(0s)) << "it waits, and is alive";
  report = update(25s, record(5, CallKind::allreduce, 3));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->calls[0].unchanged, Duration(10s));
  EXPECT_EQ(report->calls[0].since_beat, Duration(7s)) << "it was stopped";
}

TEST(ActivityWatch, ReportsHowLongAHostHasBeenIdle) {
  ActivityWatch watch;
  const auto idle_at = [&](std::chrono::nanoseconds now, std::chrono::nanoseconds cpu) {
    const auto report = watch.update(0, {}, now, {record(5, CallKind::barrier, 0)}, cpu);
    return report ? report->idle : Duration(-1ms);
  };
  EXPECT_EQ(idle_at(10s, 9s), Duration(0s));
  EXPECT_EQ(idle_at(14s, 9s), Duration(4s));
  EXPECT_EQ(idle_at(18s, 9'100ms), Duration(8s)) << "a rank that waits uses a little";
  EXPECT_EQ(idle_at(22s, 11s), Duration(0s));
}

TEST(ActivityWatch, AHostIsNotIdleBeforeTheFirstUpdate) {
  ActivityWatch watch;
  // The clock may count from the start of the machine, long ago.
  const auto report = watch.update(0, {}, 1'000'000s, {record(5, CallKind::barrier, 0)}, 2s);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->idle, Duration(0s));
}

TEST(ActivityWatch, AHostWithUnknownUsageIsBusy) {
  ActivityWatch watch;
  (void)watch.update(0, {}, 1s, {record(5, CallKind::barrier, 0)});
  const auto report = watch.update(0, {}, 60s, {record(5, CallKind::barrier, 0)});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->idle, Duration(0s));
}

TEST(ActivityWatch, ARankInANewGroupStartsNewTimes) {
  ActivityWatch watch;
  (void)watch.update(0, {}, 1s, {record(5, CallKind::barrier, 0)}, 0s);
  RankRecord other = record(5, CallKind::barrier, 0);
  other.calls.group = 10;
  const auto report = watch.update(0, {}, 20s, {other}, 0s);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->calls[0].unchanged, Duration(0s));
}

}  // namespace
}  // namespace trainyard::agent
