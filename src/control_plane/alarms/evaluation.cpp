#include "alarms/evaluation.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace trainyard::alarms {
namespace {

// The time after the end of a period within which its datapoints may arrive.
constexpr Duration kSettleTime = 1s;
constexpr Duration kIntervalMin = 1s, kIntervalMax = 10s;
constexpr int kEvaluationsInPeriod = 6;

// Decides the state when fewer datapoints were received than there are evaluation periods.
Evaluation evaluate_incomplete(const AlarmSettings& settings, Evaluation out,
                               bool breaching_since_long, State present) {
  const int64_t needed = settings.datapoints_to_alarm.value_or(settings.evaluation_periods);
  const int64_t absent = settings.evaluation_periods - int64_t(out.compared.size());
  const bool none = out.compared.empty();
  const Missing missing = settings.missing.value_or(Missing::missing);
  const bool decided = out.breaching >= needed;
  out.because = none ? Evaluation::Because::none_received : Evaluation::Because::compared;
  switch (missing) {
    case Missing::breaching:
      out.filled = absent;
      out.state = out.breaching + absent >= needed ? State::alarm : State::ok;
      return out;
    case Missing::not_breaching:
      out.filled = absent;
      out.state = decided ? State::alarm : State::ok;
      return out;
    case Missing::missing:
    case Missing::ignore:
      break;
  }
  const bool all_breach = !none && out.breaching == int64_t(out.compared.size());
  if (decided) {
    out.state = State::alarm;
  } else if (none && missing == Missing::missing) {
    out.state = State::insufficient_data;
    out.because = Evaluation::Because::unknown;
  } else if (!none && !all_breach) {
    out.state = State::ok;
  } else if (missing == Missing::missing && breaching_since_long) {
    out.state = State::alarm;
  } else {
    out.state = present;
    out.because = Evaluation::Because::retained;
  }
  return out;
}

}  // namespace

bool breaches(const AlarmSettings& settings, const Datapoint& datapoint) {
  CHECK(datapoint.value.has_value(), "missing datapoints are never compared");
  const double value = *datapoint.value;
  const double threshold = settings.threshold.value_or(0);
  const bool below = datapoint.band && value < datapoint.band->low;
  const bool above = datapoint.band && value > datapoint.band->high;
  switch (settings.comparison) {
    case Comparison::greater_or_equal:
      return value >= threshold;
    case Comparison::greater:
      return value > threshold;
    case Comparison::less:
      return value < threshold;
    case Comparison::less_or_equal:
      return value <= threshold;
    case Comparison::outside_band:
      return below || above;
    case Comparison::below_band:
      return below;
    case Comparison::above_band:
      return above;
  }
  return false;
}

Evaluation evaluate_alarm(const AlarmSettings& settings, const std::vector<Datapoint>& range,
                          State present) {
  Evaluation out;
  const int64_t needed = settings.datapoints_to_alarm.value_or(settings.evaluation_periods);
  int64_t oldest_age = 0;  // of the received datapoints, in periods; the latest period has age 1
  for (size_t i = range.size(); i-- > 0;) {
    if (!range[i].value) continue;
    if (int64_t(out.compared.size()) == settings.evaluation_periods) break;
    out.compared.push_back(range[i]);
    out.breaching += breaches(settings, range[i]);
    oldest_age = int64_t(range.size() - i);
  }
  if (int64_t(out.compared.size()) < settings.evaluation_periods)
    return evaluate_incomplete(settings, std::move(out), oldest_age >= needed, present);
  out.because = Evaluation::Because::compared;
  out.state = out.breaching >= needed ? State::alarm : State::ok;
  return out;
}

Range evaluation_range(const AlarmSettings& settings, Instant now) {
  const Duration period = settings.period();
  const Instant settled = now - kSettleTime;
  const Instant to = Instant{settled.time_since_epoch() / period * period};
  return {to - (settings.evaluation_periods + kFurtherPeriods) * period, to};
}

Duration evaluation_interval(const AlarmSettings& settings) {
  return std::clamp(settings.period() / kEvaluationsInPeriod, kIntervalMin, kIntervalMax);
}

}  // namespace trainyard::alarms
