// WatchedTime measures time by frequent reads of a clock, and counts at most `unread_max` between
// two reads. If the process is stopped or the machine suspended, the pause is therefore hardly
// counted, and deadlines do not expire during it.
//
// Requires: a running owner calls now() at least once per unread_max.
// Threads: confined to one. Lifetime: the clock outlives it. Units: nanoseconds since an arbitrary
// zero.
#pragma once

#include <algorithm>

#include "base/time.hpp"

namespace trainyard {

class WatchedTime {
 public:
  WatchedTime(Clock& clock, Duration unread_max)
      : clock_(clock), unread_max_(unread_max), read_at_(clock.monotonic()), now_(read_at_) {}

  std::chrono::nanoseconds now() {
    const auto read_at = clock_.monotonic();
    now_ += std::clamp(read_at - read_at_, std::chrono::nanoseconds(0), unread_max_);
    read_at_ = read_at;
    return now_;
  }

 private:
  Clock& clock_;
  const std::chrono::nanoseconds unread_max_;
  std::chrono::nanoseconds read_at_, now_;
};

}  // namespace trainyard
