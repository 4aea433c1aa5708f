// LoopTime is the clock for the deadlines of a host's loop. It counts only the time during which
// the loop runs.
//
// CLOCK_MONOTONIC stops while a machine is suspended, but continues while a virtual machine is
// paused or a container is frozen. Such a gap counts as kUnseenTimeMax at most (docs/decisions/32),
// so that no deadline expires because of a pause. The loop must therefore read the clock often:
// while there is a deadline, poll_timeout() is at most kPollTimeoutMax.
//
// Threads: confined to one. Errors: none. Lifetime: the clock outlives it.
#pragma once

#include <algorithm>
#include <optional>

#include "base/watched_time.hpp"

namespace trainyard::entry {

inline constexpr Duration kUnseenTimeMax = 30s;
// Well below kUnseenTimeMax: a busy machine wakes the loop late.
inline constexpr Duration kPollTimeoutMax = 10s;

class LoopTime {
 public:
  using Time = std::chrono::nanoseconds;

  explicit LoopTime(Clock& clock) : time_(clock, kUnseenTimeMax) {}

  // Returns the counted time since an arbitrary zero.
  Time now() { return time_.now(); }
  // Returns the timeout for poll() in milliseconds: 0 once `due` has passed, at most
  // kPollTimeoutMax, and -1 (no timeout) without a deadline.
  int poll_timeout(std::optional<Time> due) {
    if (!due) return -1;
    const auto left = std::chrono::ceil<Duration>(*due - now());
    return int(std::clamp(left, Duration{}, kPollTimeoutMax).count());
  }

 private:
  WatchedTime time_;
};

}  // namespace trainyard::entry
