// WatchedTime measures time by frequent reads of a clock, and counts at most `unseen_max` between
// two reads. After a process was stopped, or a machine suspended, its deadlines are therefore about
// as far away as before.
//
// Requires: while the owner works, it calls now() more often than every unseen_max.
// Threads: confined to one. Lifetime: the clock outlives it. Units: nanoseconds since an arbitrary
// zero.
#pragma once

#include <algorithm>

#include "base/time.hpp"

namespace trainyard {

class WatchedTime {
 public:
  WatchedTime(Clock& clock, Duration unseen_max)
      : clock_(clock), unseen_max_(unseen_max), looked_at_(clock.monotonic()), now_(looked_at_) {}

  std::chrono::nanoseconds now() {
    const auto looked_at = clock_.monotonic();
    now_ += std::clamp(looked_at - looked_at_, std::chrono::nanoseconds(0), unseen_max_);
    looked_at_ = looked_at;
    return now_;
  }

 private:
  Clock& clock_;
  const std::chrono::nanoseconds unseen_max_;
  std::chrono::nanoseconds looked_at_, now_;
};

}  // namespace trainyard
