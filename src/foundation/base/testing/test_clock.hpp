// TestClock is a Clock that advances only when a test moves it. Both of its times move together.
//
// Threads: call from anywhere.
#pragma once

#include <atomic>

#include "base/time.hpp"

namespace trainyard {

// 2025-11-20T09:45:00Z.
inline constexpr Instant kTestClockStart{Duration{1'763'631'900'000}};

class TestClock final : public Clock {
 public:
  explicit TestClock(Instant start = kTestClockStart) : time_(start.time_since_epoch()) {}

  Instant now() override { return Instant{std::chrono::duration_cast<Duration>(time_.load())}; }
  // Returns the time since 1970, as now() does.
  std::chrono::nanoseconds monotonic() override { return time_; }

  // Only one thread at a time may move the clock.
  void advance(std::chrono::nanoseconds by) { time_ = time_.load() + by; }
  void set(Instant time) { time_ = time.time_since_epoch(); }

 private:
  std::atomic<std::chrono::nanoseconds> time_;
};

}  // namespace trainyard
