// Detects a process that seems to hang: it has had no output and no CPU use for a while.
//
// Threads: confined to one. The caller passes the time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"

namespace trainyard::agent {

// A process that uses less of one core counts as idle: waiting threads that poll use this much.
inline constexpr double kIdleCores = 0.005;
// The interval of checks, unless a quarter of the limit is shorter.
inline constexpr Duration kStallLookInterval = 10s;

class StallWatch {
 public:
  // `after`: 0 disables the detection.
  explicit StallWatch(Duration after) : after_(after) {}

  Duration interval() const {
    return after_ > 0ms ? std::min(kStallLookInterval, after_ / 4) : 24h;
  }
  // Takes the totals since the start. Returns a message when a stall begins, and "" when it ends.
  std::optional<std::string> look(uint64_t bytes_printed, std::chrono::nanoseconds cpu,
                                  std::chrono::nanoseconds now);

 private:
  const Duration after_;
  bool begun_ = false, reported_ = false;
  uint64_t bytes_ = 0;
  std::chrono::nanoseconds cpu_{}, looked_at_{}, active_at_{};
};

}  // namespace trainyard::agent
