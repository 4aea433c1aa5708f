// A Statistic is a number that summarises the samples of one period: an average, a percentile, a
// trimmed mean.
//
// Percentiles and their relatives need the samples themselves. A sample that joins several values
// which differ (a statistic set) has lost them: a period with such a sample has no percentile, as
// on AWS.
//
// Threads: pure functions. Errors: of parsing: invalid.
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
  percentile,       // the smallest value that has at least `upper` percent of the samples up to it
  trimmed_mean,     // of the samples within the bounds
  winsorized_mean,  // samples beyond the bounds count as the bounds
  trimmed_count,
  trimmed_sum,
  percentile_rank,  // how many percent of the samples are within the bounds, which are values
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

// True if it is computed from samples; the others need only a Datapoint.
bool needs_samples(const Statistic& statistic);

// Requires: !needs_samples(statistic).
double value_of(const Statistic& statistic, const observe::Datapoint& point);

// Returns nullopt if there are no samples, none within the bounds, or one that joins different
// values.
std::optional<double> value_of(const Statistic& statistic, std::vector<observe::Sample> samples);

}  // namespace trainyard::metric_math
