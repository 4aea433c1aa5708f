// ControlTime is the clock of all decisions of control. It advances with the machine's monotonic
// clock, independently of the wall clock. Command records have this time, and deadlines are
// compared with it.
//
// It begins as wall time, so both are equal until the wall clock is set or the machine is
// suspended; their difference is offset(). A job's instants are control time plus the offset at its
// creation (Job::clock_offset): users see the wall time of its creation, and durations are exact.
// docs/decisions/32 has the reasons.
//
//   the wall clock is set          offset() changes, for later jobs; now() does not change
//   the machine is suspended       now() stands still, as the monotonic clock does
//   now() is not called for long   (a stopped process, a paused virtual machine) at most
//                                  unwatched_max counts
//   the server restarts            the monotonic clock of the same boot continues; time in between
//                                  counts
//   the machine was rebooted       the time that passed by the wall clock counts, at least 0
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

// The wall clock counts as set if it deviates by this much; NTP makes smaller corrections.
inline constexpr Duration kClockStepMin = 1s;

// The stored state, with which a restarted server continues the same time.
struct ClockRecord {
  std::string boot;   // the machine's boot id: the monotonic clock belongs to it
  Duration base{};    // control time minus the monotonic clock
  Duration offset{};  // the wall clock minus control time
  Instant seen;       // control time when this was written
};

Json to_json(const ClockRecord& record);
Result<ClockRecord> clock_record_from_json(const Json& json);

struct ClockSettings {
  std::string boot;                   // "": unknown; each start counts as one after a reboot
  std::optional<ClockRecord> record;  // from the previous process; nullopt: the first start
  // Stores the record for the next process. Called at the start and after each jump, possibly with
  // a lock held: must not call back.
  std::function<void(const ClockRecord&)> keep = [](const ClockRecord&) {};
  Duration unwatched_max = Duration::max();
};

class ControlTime {
 public:
  ControlTime(Clock& clock, ClockSettings settings);

  Instant now();
  // Returns the wall clock minus now(), as of the last now(). It changes in steps of kClockStepMin
  // or more.
  Duration offset() const;
  // Advances the time to at least this instant: records of the ledger must not be ahead of it.
  void not_before(Instant least);

 private:
  Instant read_clock() REQUIRES(mutex_);

  Clock& clock_;
  const ClockSettings settings_;
  mutable Mutex mutex_;
  Duration base_ GUARDED_BY(mutex_){};
  Duration offset_ GUARDED_BY(mutex_){};
  Duration read_at_ GUARDED_BY(mutex_){};  // monotonic
};

}  // namespace trainyard::control
