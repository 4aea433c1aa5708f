// Decides the state of a metric alarm from its datapoints: M of the last N breach the threshold.
//
// The datapoints cover a range of more than N periods, so that a late or missing datapoint is
// replaced by an earlier one. If the range has N or more datapoints, the latest N decide. With
// fewer, the missing ones are treated as the settings say. With "missing" and "ignore", the state
// remains if the datapoints cannot decide. With "missing", two cases differ: without any datapoint
// the state is insufficient_data, and the alarm fires if all datapoints breach and the oldest began
// at least M periods ago.
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

// One period of the range. Without a value, the datapoint is missing.
struct Datapoint {
  Instant at;
  std::optional<double> value;
  std::optional<Bounds> band;  // for alarms with a threshold_id
};

// An Evaluation is the state of an alarm with the reason for it.
struct Evaluation {
  enum class Because { compared, none_received, unknown, retained };
  State state = State::insufficient_data;
  Because because = Because::unknown;
  // The datapoints that were compared, the latest first: at most as many as evaluation periods.
  std::vector<Datapoint> compared;
  int64_t breaching = 0;  // the number of datapoints in `compared` that breach the threshold
  int64_t filled = 0;     // the number of missing datapoints that were treated as (not) breaching
};

// The number of periods by which the range is longer than the evaluation periods.
inline constexpr int64_t kFurtherPeriods = 2;

// Returns whether the value breaches the threshold or the band. Requires: datapoint.value.
bool breaches(const AlarmSettings& settings, const Datapoint& datapoint);

// `range`: evaluation_periods + kFurtherPeriods periods, the oldest first. `present`: the current
// state of the alarm.
Evaluation evaluate_alarm(const AlarmSettings& settings, const std::vector<Datapoint>& range,
                          State present);

// The times that the datapoints of a metric alarm cover. The last period ended before `now`.
struct Range {
  Instant from, to;
};
Range evaluation_range(const AlarmSettings& settings, Instant now);

// Returns the time between two evaluations of an alarm: a sixth of its period, 1 to 10 s.
Duration evaluation_interval(const AlarmSettings& settings);

}  // namespace trainyard::alarms
