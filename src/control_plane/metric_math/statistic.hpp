// A Statistic is a number that summarises the samples of one period: an average, a percentile, a
// trimmed mean.
//
// Percentiles and trimmed or winsorized statistics are computed from the samples. A sample may be a
// statistic set of several different values, which are not stored: a period with such a sample has
// no percentile, as on AWS.
//
// Threads: pure functions. Errors: parse_statistic(): invalid.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "observe/metrics.hpp"

namespace trainyard::metric_math {

enum class StatisticKind {
  average,
  sum,
  minimum,
  maximum,
  count,
  percentile,       // the smallest value that is not less than `upper` percent of the samples
  trimmed_mean,     // the mean of the samples within the bounds
  winsorized_mean,  // samples beyond the bounds count as the bounds
  trimmed_count,
  trimmed_sum,
  percentile_rank,  // the percentage of samples within the bounds, which are values
};

struct Statistic {
  StatisticKind kind = StatisticKind::average;
  // The bounds, in percent of the samples or as values. For a percentile, `upper` is its number.
  std::optional<double> lower, upper;
  bool in_percent = true;
  bool operator==(const Statistic&) const = default;
};

// Reads "Average", "Sum", "Minimum", "Maximum", "SampleCount", "p99.9", "tm90", "IQM",
// "TM(2%:98%)", "WM(:100)", "PR(100:2000)" and the like.
Result<Statistic> parse_statistic(std::string_view text);

// Returns whether it is computed from samples; other statistics need only a Datapoint.
bool needs_samples(const Statistic& statistic);

// Requires: !needs_samples(statistic).
double value_of(const Statistic& statistic, const observe::Datapoint& point);

// Returns nullopt without samples, without samples within the bounds, or if a sample is a statistic
// set of different values.
std::optional<double> value_of(const Statistic& statistic, std::vector<observe::Sample> samples);

}  // namespace trainyard::metric_math
