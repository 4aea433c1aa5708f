#include "agent/activity_watch.hpp"

#include <gtest/gtest.h>

namespace trainyard::agent {
namespace {

TEST(ActivityWatch, ReportsTheAgesOfTheLastChanges) {
  ActivityWatch watch;
  EXPECT_FALSE(watch.look(0, {}, 1s)) << "nothing has happened";
  auto report = watch.look(10, {}, 2s);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->output, Duration(0s));
  EXPECT_TRUE(report->ranks.empty());

  EXPECT_FALSE(watch.look(20, {{4, 7, 0, 0}}, 3s)) << "too soon after the first";
  report = watch.look(20, {{4, 9, 5, 0}}, 8s);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->output, Duration(5s));
  ASSERT_EQ(report->ranks.size(), 1u);
  EXPECT_EQ(report->ranks[0].rank, 3u);
  EXPECT_EQ(report->ranks[0].collectives, 9u);
  EXPECT_EQ(report->ranks[0].collective, Duration(0s));
  EXPECT_EQ(report->ranks[0].output, Duration(0s));

  EXPECT_FALSE(watch.look(20, {{4, 9, 5, 0}}, 60s)) << "a host that does nothing reports nothing";
  watch.forget_report();
  report = watch.look(20, {{4, 9, 5, 0}}, 68s);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->output, Duration(65s));
  EXPECT_EQ(report->ranks[0].collective, Duration(60s));
}

TEST(ActivityWatch, KnowsNoTimeOfWhatNeverHappened) {
  ActivityWatch watch;
  const auto report = watch.look(0, {{1, 0, 0, 0}}, 1s);
  ASSERT_TRUE(report) << "there is a rank";
  EXPECT_FALSE(report->output);
  ASSERT_EQ(report->ranks.size(), 1u);
  EXPECT_FALSE(report->ranks[0].output);
  EXPECT_FALSE(report->ranks[0].collective);
}

TEST(ActivityWatch, ForgetsRanksThatLeaveTheTable) {
  ActivityWatch watch;
  ASSERT_EQ(watch.look(0, {{1, 1, 0, 0}, {2, 1, 0, 0}}, 1s)->ranks.size(), 2u);
  ASSERT_EQ(watch.look(1, {{2, 1, 0, 0}}, 10s)->ranks.size(), 1u);
}

}  // namespace
}  // namespace trainyard::agent
