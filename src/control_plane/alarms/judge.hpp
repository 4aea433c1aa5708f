// Decides the state of a metric alarm from its datapoints: M of the last N breach the threshold.
//
// The datapoints cover a range that is longer than N periods, so that late or missing ones
// need not be guessed. If N or more are there, the latest N decide. With fewer, the others count as
// the settings say. With "missing" and "ignore", datapoints that cannot decide leave the state; the
// former has insufficient data if there is none at all, and alarms if all that there are breach and
// began at least M periods ago.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <vector>

#include "alarms/alarm.hpp"

namespace trainyard::alarms {

struct Bounds {
  double low = 0, high = 0;
};

// A period of the range. Without a value it is missing.
struct Datapoint {
  Instant at;
  std::optional<double> value;
  std::optional<Bounds> band;  // of alarms with a threshold_id
};

// Why the alarm has its state.
struct Judgement {
  enum class Because { compared, none_received, unknown, retained };
  State state = State::insufficient_data;
  Because because = Because::unknown;
  // The datapoints that were compared, the latest first: at most the evaluation periods.
  std::vector<Datapoint> compared;
  int64_t breaching = 0;  // how many of `compared` breach the threshold
  int64_t filled = 0;     // missing ones that counted as the settings say
};

// More periods than the evaluation periods that the range has.
inline constexpr int64_t kFurtherPeriods = 2;

// True if the value breaches the threshold or the band. Requires: datapoint.value.
bool breaches(const AlarmSettings& settings, const Datapoint& datapoint);

// `range`: evaluation_periods + kFurtherPeriods periods, the oldest first. `present`: the present
// state.
Judgement judge(const AlarmSettings& settings, const std::vector<Datapoint>& range, State present);

// The times of a metric alarm's range: the last period ended before `now`.
struct Range {
  Instant from, to;
};
Range range_of(const AlarmSettings& settings, Instant now);

// How long after an evaluation the alarm is evaluated again: well within one period.
Duration interval_of(const AlarmSettings& settings);

}  // namespace trainyard::alarms
