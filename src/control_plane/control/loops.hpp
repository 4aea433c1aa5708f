// Loops runs the two threads that repeat control's steps: one commits, one reconciles. Each sleeps
// until its step is due. The reconciling thread also wakes every reconcile_interval, and rests
// after each step, kRestFactor times as long as decisions and failed actions took: a flood of
// commands, each of which makes it due, costs at most a fifth of a core. The time of successful
// actions (a gang's network, a removal) does not count, since the next job would wait for it.
//
// Threads: created and destroyed by one. Lifetime: control outlives it.
#pragma once

#include <thread>

#include "base/prometheus.hpp"
#include "base/thread_safety.hpp"
#include "control/control.hpp"

namespace trainyard::control {

inline constexpr int kRestFactor = 4;
inline constexpr Duration kRestMax = 500ms;  // limits the delay of orders

// The durations of the steps.
struct LoopStatistics {
  Histogram commit_seconds, reconcile_seconds;
};

class Loops {
 public:
  // Starts both threads. Lifetime: `clock` and `statistics` outlive it; nullptr: durations are not
  // measured.
  Loops(ControlPlane& control, Duration reconcile_interval, Clock* clock = nullptr,
        LoopStatistics* statistics = nullptr);
  // Ends both threads after their current steps. Later commands wait until control rejects them.
  ~Loops();
  Loops(const Loops&) = delete;

 private:
  void commit();
  // A flag that a thread sleeps on.
  class Due {
   public:
    void set();
    void stop();
    // Waits until the flag is set, and clears it. Returns false once stopped.
    bool wait();
    bool wait_for(Duration longest);
    // Sleeps for the time even if the flag is set. Returns false once stopped.
    bool rest(std::chrono::nanoseconds time);

   private:
    Mutex mutex_;
    ConditionVariable changed_;
    bool due_ GUARDED_BY(mutex_) = false;
    bool stopped_ GUARDED_BY(mutex_) = false;
  };

  ControlPlane& control_;
  Clock* const clock_;
  LoopStatistics* const statistics_;
  Due commit_due_, reconcile_due_;
  std::thread commit_thread_, reconcile_thread_;
};

}  // namespace trainyard::control
