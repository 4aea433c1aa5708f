#include "entry/loop_time.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "entry/coordinator.hpp"
#include "entry/host_run.hpp"

namespace trainyard::entry {
namespace {

// Sleeps as the loop does until the deadline, or until `at_most` has passed on the clock.
bool comes(LoopTime& time, TestClock& clock, LoopTime::Time due, Duration at_most) {
  for (const auto end = clock.monotonic() + at_most; clock.monotonic() < end;) {
    if (time.now() >= due) return true;
    clock.advance(std::min<std::chrono::nanoseconds>(Duration{time.poll_timeout(due)},
                                                     end - clock.monotonic()));
  }
  return time.now() >= due;
}

TEST(LoopTime, KeepsADeadlineOfADayToTheSecond) {
  TestClock clock;
  LoopTime time(clock);
  const auto due = time.now() + kJoinMax;
  EXPECT_FALSE(comes(time, clock, due, kJoinMax - 1s));
  EXPECT_TRUE(comes(time, clock, due, 1s));
}

TEST(LoopTime, KeepsADeadlineAcrossAPauseThatTheClockCounted) {
  TestClock clock;
  LoopTime time(clock);
  const auto due = time.now() + kJoinMax;
  ASSERT_FALSE(comes(time, clock, due, 1h));
  clock.advance(48h);
  EXPECT_FALSE(comes(time, clock, due, 22h)) << "a pause of two days does not end the join";
  EXPECT_TRUE(comes(time, clock, due, 1h));
}

TEST(LoopTime, KeepsAShortDeadlineAcrossAPause) {
  TestClock clock;
  LoopTime time(clock);
  const auto due = time.now() + kLostTimeout;
  clock.advance(10min);
  EXPECT_LT(time.now(), due);
  EXPECT_TRUE(comes(time, clock, due, kLostTimeout));
}

TEST(LoopTime, SleepsNoLongerThanTheInterval) {
  TestClock clock;
  LoopTime time(clock);
  EXPECT_EQ(time.poll_timeout({}), -1);
  EXPECT_EQ(time.poll_timeout(time.now() + kJoinMax), Duration{kPollTimeoutMax}.count());
  EXPECT_EQ(time.poll_timeout(time.now() + std::chrono::microseconds(1500)), 2)
      << "not before it is due";
  EXPECT_EQ(time.poll_timeout(time.now()), 0);
  EXPECT_EQ(time.poll_timeout(time.now() - 1h), 0);
}

}  // namespace
}  // namespace trainyard::entry
