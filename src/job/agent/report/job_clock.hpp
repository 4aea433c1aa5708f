// Returns times for the job's history, on the server's clock: the time at which the server wrote
// the order, plus the time that has passed on this machine. The wall clocks of both machines may
// differ, and may be set meanwhile.
//
// Threads: call from anywhere. Lifetime: the clock outlives it.
#pragma once

#include "base/time.hpp"

namespace trainyard::agent {

class JobClock {
 public:
  // `issued`: the time of the order; 0 (the server does not send it): the wall clock is used.
  JobClock(Clock& clock, Instant issued)
      : clock_(clock), issued_(issued), began_(clock.monotonic()) {}

  Instant now() const {
    if (issued_ == Instant{}) return clock_.now();
    return issued_ + std::chrono::floor<Duration>(clock_.monotonic() - began_);
  }

 private:
  Clock& clock_;
  const Instant issued_;
  const std::chrono::nanoseconds began_;
};

}  // namespace trainyard::agent
