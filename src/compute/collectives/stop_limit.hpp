// StopLimit ends the waits of a rank whose program must stop.
//
// While the ranks join, a stop ends the wait at once. Later, all ranks stop after the same step,
// and a rank waits at most `limit` for the agreement on that step.
//
// Threads: confined to the thread that joins and uses the group. Lifetime: it outlives the group;
// `stop` and `clock` outlive it. Errors: none.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "base/time.hpp"

namespace trainyard::collectives {

class StopLimit {
 public:
  StopLimit(const std::atomic<bool>& stop, Clock& clock, std::chrono::nanoseconds limit)
      : stop_(stop), clock_(clock), limit_(limit) {}

  // Returns true if the rank must stop waiting; for TcpOptions::cancelled.
  bool is_exceeded() {
    if (!stop_) return false;
    if (!stop_seen_at_) stop_seen_at_ = clock_.monotonic();
    return joining_ || clock_.monotonic() - *stop_seen_at_ > limit_;
  }
  void joined() { joining_ = false; }

 private:
  const std::atomic<bool>& stop_;
  Clock& clock_;
  const std::chrono::nanoseconds limit_;
  bool joining_ = true;
  std::optional<std::chrono::nanoseconds> stop_seen_at_;
};

}  // namespace trainyard::collectives
