#include "base/watched_time.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"

namespace trainyard {
namespace {

TEST(WatchedTime, AdvancesWithTheClock) {
  TestClock clock;
  WatchedTime time(clock, 30s);
  const auto begun = time.now();
  for (int second = 1; second <= 100; ++second) {
    clock.advance(1s);
    EXPECT_EQ(time.now() - begun, std::chrono::seconds(second));
  }
}

TEST(WatchedTime, CountsAtMostTheLimitBetweenTwoReads) {
  TestClock clock;
  WatchedTime time(clock, 30s);
  const auto begun = time.now();
  clock.advance(3h);
  EXPECT_EQ(time.now() - begun, 30s);
  EXPECT_EQ(time.now() - begun, 30s) << "once";
  clock.advance(29s);
  EXPECT_EQ(time.now() - begun, 59s);
}

TEST(WatchedTime, NeverGoesBack) {
  TestClock clock;
  WatchedTime time(clock, 30s);
  const auto begun = time.now();
  clock.advance(-1h);
  EXPECT_EQ(time.now(), begun);
  clock.advance(2s);
  EXPECT_EQ(time.now() - begun, 2s);
}

}  // namespace
}  // namespace trainyard
