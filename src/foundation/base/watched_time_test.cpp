#include "base/watched_time.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

class SetClock final : public Clock {
 public:
  Instant now() override { return {}; }
  std::chrono::nanoseconds monotonic() override { return at; }
  std::chrono::nanoseconds at = 5h;
};

TEST(WatchedTime, GoesOnAsTheClockDoes) {
  SetClock clock;
  WatchedTime time(clock, 30s);
  const auto begun = time.now();
  for (int second = 1; second <= 100; ++second) {
    clock.at += 1s;
    EXPECT_EQ(time.now() - begun, std::chrono::seconds(second));
  }
}

TEST(WatchedTime, CountsLittleOfTheTimeThatNobodyLooked) {
  SetClock clock;
  WatchedTime time(clock, 30s);
  const auto begun = time.now();
  clock.at += 3h;
  EXPECT_EQ(time.now() - begun, 30s);
  EXPECT_EQ(time.now() - begun, 30s) << "once";
  clock.at += 29s;
  EXPECT_EQ(time.now() - begun, 59s);
}

TEST(WatchedTime, NeverGoesBack) {
  SetClock clock;
  WatchedTime time(clock, 30s);
  const auto begun = time.now();
  clock.at -= 1h;
  EXPECT_EQ(time.now(), begun);
  clock.at += 2s;
  EXPECT_EQ(time.now() - begun, 2s);
}

}  // namespace
}  // namespace trainyard
