#include "agent/output/stall_watch.hpp"

#include <gtest/gtest.h>

namespace trainyard::agent {
namespace {

TEST(StallWatch, DetectsAProcessWithoutOutputAndWork) {
  StallWatch watch(30min);
  EXPECT_FALSE(watch.update(100, 5s, 0s));
  EXPECT_FALSE(watch.update(100, 5s, 29min));
  const auto message = watch.update(100, 5s, 30min);
  ASSERT_TRUE(message);
  EXPECT_EQ(*message, "seems to hang: no output and no CPU use for 30 minutes");
  EXPECT_FALSE(watch.update(100, 5s, 31min)) << "once";
  EXPECT_EQ(watch.update(101, 5s, 32min), "");
  EXPECT_FALSE(watch.update(101, 5s, 61min));
  EXPECT_TRUE(watch.update(101, 5s, 62min)) << "again";
}

TEST(StallWatch, WorkCountsAsActivity) {
  StallWatch watch(1min);
  EXPECT_FALSE(watch.update(0, 0s, 0s));
  for (int minute = 1; minute < 10; ++minute)  // a hundredth of a core
    EXPECT_FALSE(watch.update(0, minute * 600ms, std::chrono::minutes(minute)));
  EXPECT_TRUE(watch.update(0, 9 * 600ms + 60ms, 10min)) << "a thousandth is not work";
}

TEST(StallWatch, ReportsNothingWhenDisabled) {
  StallWatch watch(0ms);
  EXPECT_FALSE(watch.update(0, 0s, 0s));
  EXPECT_FALSE(watch.update(0, 0s, 1000h));
  EXPECT_GT(watch.interval(), 1h);
  EXPECT_EQ(StallWatch(4s).interval(), 1s);
  EXPECT_EQ(StallWatch(30min).interval(), kStallCheckInterval);
}

}  // namespace
}  // namespace trainyard::agent
