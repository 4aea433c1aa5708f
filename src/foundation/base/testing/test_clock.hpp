// TestClock is a Clock that stands still until a test moves it. Both of its times move together.
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
  // Since 1970, as now().
  std::chrono::nanoseconds monotonic() override { return time_; }

  // Only the thread that moves the clock may do so at a time.
  void advance(std::chrono::nanoseconds by) { time_ = time_.load() + by; }
  void set(Instant time) { time_ = time.time_since_epoch(); }

 private:
  std::atomic<std::chrono::nanoseconds> time_;
};

}  // namespace trainyard
