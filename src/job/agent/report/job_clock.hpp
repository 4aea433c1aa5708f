// JobClock returns times for the job's history, on the server's clock: the time at which the server
// wrote the order, plus the time that has passed on this machine since the agent began. The wall
// clocks of both machines may differ, and may be set meanwhile.
//
// An agent may begin long after its order was written: Slurm and Kubernetes have queues, and pull
// images. So the server's first Welcome, before which an agent runs nothing of the job, moves the
// clock forward to the server's time.
//
// Threads: call from anywhere. Lifetime: the clock outlives it.
#pragma once

#include <atomic>

#include "base/time.hpp"

namespace trainyard::agent {

class JobClock {
 public:
  // `issued`: the time of the order; 0 (the server does not send it): the wall clock is used.
  JobClock(Clock& clock, Instant issued)
      : clock_(clock), issued_(issued), began_(clock.monotonic()) {}

  Instant now() const {
    if (issued_ == Instant{}) return clock_.now();
    return issued_ + late_.load() + std::chrono::floor<Duration>(clock_.monotonic() - began_);
  }

  // Moves the clock forward to the server's time. Later calls have no effect: facts may already
  // have the times of this clock.
  void catch_up(Instant server_time) {
    if (caught_up_.exchange(true)) return;
    const Duration late = server_time - now();
    if (issued_ != Instant{} && late > Duration{}) late_ = late;
  }

 private:
  Clock& clock_;
  const Instant issued_;
  const std::chrono::nanoseconds began_;
  std::atomic<bool> caught_up_ = false;
  std::atomic<Duration> late_{};  // the time from the order to the agent's begin
};

}  // namespace trainyard::agent
