// Replayer replays the jobs of a past period with other machines, policies and limits
// (schedule/replay.hpp), in slices: each call works for kReplaySlice on its caller's thread, and
// returns the progress. So no thread is blocked for long, clients show progress, and a replay that
// its client abandons is dropped after kReplayIdleMax.
//
// One replay exists at a time, which may take some 200 MB. Jobs are read from the ledger page by
// page, without delaying its writer.
//
// Threads: call from anywhere.
// Errors:  invalid (period, changes), not_found (no such replay, or it was dropped), exhausted
//          (another replay is being computed; too many jobs; more time than kReplayTimeMax),
//          unavailable (nothing was planned yet), internal, and the ledger's.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/thread_safety.hpp"
#include "control/explainer.hpp"
#include "reconcile/replay_view.hpp"

namespace trainyard::control {

inline constexpr std::chrono::nanoseconds kReplaySlice = 1s;
inline constexpr std::chrono::nanoseconds kReplayIdleMax = 30s;
inline constexpr std::chrono::nanoseconds kReplayTimeMax = 300s;  // of all slices
inline constexpr Duration kReplayPeriodMax = 24h * 366;

class Replayer {
 public:
  // Reads jobs from `control`, and the snapshot of the last iteration of reconcile from
  // `explainer`. Lifetime: all arguments outlive it.
  Replayer(const Settings& settings, Control& control, Explainer& explainer, Clock& clock,
           Random& random)
      : settings_(settings),
        control_(control),
        explainer_(explainer),
        clock_(clock),
        random_(random) {}

  // Begins a replay and works on it. An earlier replay of the same principal is dropped.
  Result<ReplayReport> start(const ReplayCaller& caller, ReplayRequest request);
  // Works on the replay that start() returned.
  Result<ReplayReport> resume(const ReplayCaller& caller, const std::string& id);
  // Drops a replay that no client has resumed for kReplayIdleMax.
  void drop_idle();

 private:
  class Session;

  Result<ReplayReport> work(std::shared_ptr<Session> session, const ReplayCaller& caller);

  const Settings& settings_;
  Control& control_;
  Explainer& explainer_;
  Clock& clock_;
  Random& random_;
  Mutex mutex_;
  // Shared with the caller that works on it.
  std::shared_ptr<Session> session_ GUARDED_BY(mutex_);
  bool busy_ GUARDED_BY(mutex_) = false;
  std::chrono::nanoseconds used_ GUARDED_BY(mutex_){};  // the time of the last work on it
};

}  // namespace trainyard::control
