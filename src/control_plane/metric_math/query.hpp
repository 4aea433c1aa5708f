// Evaluates a list of queries. Each query is a statistic of a stored metric for each period, or an
// expression over other queries of the list.
//
// Threads: call from anywhere. Errors: invalid (with the id of the expression), exhausted (limits),
// those of Metrics. Lifetime: metrics is used only during the call.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "metric_math/expression.hpp"
#include "metric_math/statistic.hpp"
#include "observe/metrics.hpp"

namespace trainyard::metric_math {

inline constexpr size_t kQueriesMax = 500;
// Points that all metrics of one list may have together, as on AWS.
inline constexpr size_t kPointsMax = 100'800;
// Points that all results of one list may have together: about 16 MB.
inline constexpr size_t kResultPointsMax = 1'000'000;
// Samples that are read to compute percentiles of one metric: about 100 MB.
inline constexpr size_t kSamplesMax = 1'000'000;

struct MetricSelection {
  observe::MetricKey key;
  Statistic statistic;
  Duration period = 60s;
  std::string unit;  // "": the points of all units, merged
};

struct Query {
  std::string id;
  std::optional<MetricSelection> metric;  // nullopt: the query is an expression
  std::string expression;
  std::string label;
};

struct QueryTime {
  Instant from, to;  // `to` is exclusive
};

// Returns the start of the first period, as AWS documents it: `from`, rounded down to the period if
// that is shorter than a minute, or else to the resolution of metrics of that age.
Instant first_period(Instant from, Duration period, Instant now);

// Checks ids, expressions and references: each reference must be the id of a query of the list, and
// no query may depend on itself.
Result<void> check_queries(const std::vector<Query>& queries);

// Reads a statistic of one metric for each period. The first period begins at `time.from`; periods
// without samples are left out.
Result<Series> read_series(observe::Metrics& metrics, const MetricSelection& of, QueryTime time);

// Evaluates the queries, and returns the series of the ids in `wanted`. A number becomes a series
// with this value at each period of the metric with the shortest period. Errors also: those of
// check_queries.
Result<std::map<std::string, std::vector<Series>>> evaluate(observe::Metrics& metrics,
                                                            const std::vector<Query>& queries,
                                                            const std::vector<std::string>& wanted,
                                                            QueryTime time);

}  // namespace trainyard::metric_math
