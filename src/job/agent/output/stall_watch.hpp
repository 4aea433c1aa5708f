// Detects a process that seems to hang: it has printed nothing and used no CPU for a configured
// time.
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

// A process that uses less than this of one core counts as idle: waiting threads that poll use that
// much.
inline constexpr double kIdleCores = 0.005;
// The interval of checks, unless a quarter of the limit is shorter.
inline constexpr Duration kStallCheckInterval = 10s;

class StallWatch {
 public:
  // `after`: 0 disables the detection.
  explicit StallWatch(Duration after) : after_(after) {}

  Duration interval() const {
    return after_ > 0ms ? std::min(kStallCheckInterval, after_ / 4) : 24h;
  }
  // Updates the totals since the start of the process. Returns a message when a stall begins, and
  // "" when it ends.
  std::optional<std::string> update(uint64_t bytes_printed, std::chrono::nanoseconds cpu,
                                    std::chrono::nanoseconds now);

 private:
  const Duration after_;
  bool begun_ = false, reported_ = false;
  uint64_t bytes_ = 0;
  std::chrono::nanoseconds cpu_{}, checked_at_{}, active_at_{};
};

}  // namespace trainyard::agent
