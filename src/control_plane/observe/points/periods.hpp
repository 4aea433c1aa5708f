// A PeriodJoiner aggregates samples to datapoints, one per period and unit, for queries and
// retention.
//
// Threads: a PeriodJoiner is confined to one thread. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "observe/metrics.hpp"

namespace trainyard::observe {

// Returns the start of the period that contains `at`; one period begins at `origin`. Requires:
// at >= origin, step > 0.
int64_t period_start(int64_t at, int64_t origin, int64_t step);

class PeriodJoiner {
 public:
  // Periods of `step` milliseconds are counted from `origin`.
  PeriodJoiner(int64_t origin, int64_t step) : origin_(origin), step_(step) {}

  // Requires: at >= origin; samples are added in the order of time.
  void add(const Sample& sample);
  // Returns the datapoints, sorted by time and unit. It may be called once.
  std::vector<Datapoint> finish();

 private:
  void end_period();

  const int64_t origin_;
  const int64_t step_;
  std::vector<Datapoint> points_;
  size_t period_begin_ = 0;  // index of the current period's first datapoint
  int64_t period_ = 0;       // the start of the current period, if it has a datapoint
};

}  // namespace trainyard::observe
