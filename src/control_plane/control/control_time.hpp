// ControlTime is the time by which control decides: it advances as the machine's monotonic clock
// does, whatever happens to the wall clock. Command records carry it, and every deadline is
// compared with it.
//
// It begins as wall time, so the two agree until the wall clock is set or the machine is suspended;
// their difference is offset(). A job's instants are control time plus the offset at its creation
// (Job::clock_offset): users see the wall clock of its creation, and durations are exact.
// docs/decisions/32 has the reasons.
//
//   the wall clock is set          offset() changes, for jobs that are created afterwards; now() is
//   unaffected
//   the machine is suspended       now() stands as the monotonic clock does
//   now() is not called for long   (a stopped process, a paused virtual machine) at most
//                                  unwatched_max counts
//   the server restarts            the monotonic clock of the same boot continues; time in between
//                                  counts
//   the machine was rebooted       the wall clock tells how much time passed, never less than none
//
// Threads: call from anywhere. Errors: none. Lifetime: the clock outlives it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"

namespace trainyard::control {

// The wall clock counts as set when it deviates by this much: slower changes are normal for NTP.
inline constexpr Duration kClockStepMin = 1s;

// The state that must outlive the process so that a restart continues the same time.
struct ClockRecord {
  std::string boot;   // the machine's boot id: the monotonic clock belongs to it
  Duration base{};    // control time minus the monotonic clock
  Duration offset{};  // the wall clock minus control time
  Instant seen;       // control time when this was written
};

Json to_json(const ClockRecord& record);
Result<ClockRecord> clock_record_from_json(const Json& json);

struct ClockSettings {
  std::string boot;  // "": unknown: each start counts as one after a reboot
  std::optional<ClockRecord>
      record;  // the previous process wrote it; nothing: this one is the first
  // Keeps the record for the next process; called at the start and after each jump, possibly under
  // a lock: must not call back.
  std::function<void(const ClockRecord&)> keep = [](const ClockRecord&) {};
  Duration unwatched_max = Duration::max();
};

class ControlTime {
 public:
  ControlTime(Clock& clock, ClockSettings settings);

  Instant now();
  // The wall clock minus now(), as now() saw it last; it changes in steps of kClockStepMin or more.
  Duration offset() const;
  // The time is at least this: what the ledger already holds is not ahead of it.
  void not_before(Instant least);

 private:
  Instant look() REQUIRES(mutex_);

  Clock& clock_;
  const ClockSettings settings_;
  mutable Mutex mutex_;
  Duration base_ GUARDED_BY(mutex_){};
  Duration offset_ GUARDED_BY(mutex_){};
  Duration looked_at_ GUARDED_BY(mutex_){};  // monotonic
};

}  // namespace trainyard::control
