#include "observe/points/periods.hpp"

#include <algorithm>

namespace trainyard::observe {

int64_t period_start(int64_t at, int64_t origin, int64_t step) {
  // Unsigned: the difference of two times may exceed int64_t.
  const uint64_t since = uint64_t(at) - uint64_t(origin);
  return int64_t(uint64_t(origin) + since / uint64_t(step) * uint64_t(step));
}

void PeriodJoiner::add(const Sample& sample) {
  const int64_t at = to_milliseconds(sample.at);
  const bool same =
      points_.size() > period_begin_ && uint64_t(at) - uint64_t(period_) < uint64_t(step_);
  if (!same) {
    end_period();
    period_ = period_start(at, origin_, step_);
  }
  for (size_t i = period_begin_; i < points_.size(); ++i) {
    Datapoint& point = points_[i];
    if (point.unit != sample.unit) continue;
    point.count += sample.count;
    point.sum += sample.sum;
    point.minimum = std::min(point.minimum, sample.minimum);
    point.maximum = std::max(point.maximum, sample.maximum);
    return;
  }
  points_.push_back({.at = from_milliseconds(period_),
                     .count = sample.count,
                     .sum = sample.sum,
                     .minimum = sample.minimum,
                     .maximum = sample.maximum,
                     .unit = sample.unit});
}

void PeriodJoiner::end_period() {
  std::sort(points_.begin() + std::ptrdiff_t(period_begin_), points_.end(),
            [](const Datapoint& a, const Datapoint& b) { return a.unit < b.unit; });
  period_begin_ = points_.size();
}

std::vector<Datapoint> PeriodJoiner::finish() {
  end_period();
  return std::move(points_);
}

}  // namespace trainyard::observe
