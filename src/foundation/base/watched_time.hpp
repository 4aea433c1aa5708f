// WatchedTime measures the time during which its owner looked at the clock: between two looks no more than `unseen_max`
// counts, so that a process that was stopped, or a machine that was suspended, finds its deadlines as far away as before.
//
// Requires: the owner looks more often than every unseen_max while it works.
// Threads: confined to one. Lifetime: the clock outlives it. Units: nanoseconds since an arbitrary zero.
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
