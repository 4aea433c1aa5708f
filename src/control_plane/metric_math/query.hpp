// Evaluates a list of queries: each is a statistic of a stored metric for each period, or an
// expression over other queries of the list.
//
// Threads: call from anywhere. Errors: invalid (an expression, with its id), exhausted (limits),
// those of Metrics. Lifetime: metrics is used during the call.
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
// Points that the metrics of one list may have together, as on AWS.
inline constexpr size_t kPointsMax = 100'800;
// Points that the results of one list have together: about 16 MB.
inline constexpr size_t kResultPointsMax = 1'000'000;
// Samples that are read to compute percentiles of one metric: about 100 MB.
inline constexpr size_t kSamplesMax = 1'000'000;

struct MetricSelection {
  observe::MetricKey key;
  Statistic statistic;
  Duration period = 60s;
  std::string unit;  // "": of any unit, joined
};

struct Query {
  std::string id;
  std::optional<MetricSelection> metric;  // otherwise an expression
  std::string expression;
  std::string label;
};

struct QueryTime {
  Instant from, to;  // `to` is exclusive
};

// The start of the first period, as AWS documents it: rounded down to the period if that is shorter
// than a minute, or else to the resolution of metrics of that age.
Instant first_period(Instant from, Duration period, Instant now);

// Checks ids, expressions and references: each names a query of the list, and none depends on
// itself.
Result<void> check_queries(const std::vector<Query>& queries);

// A statistic of one metric by period; periods are counted from `time.from`, and those without
// samples are left out.
Result<Series> read_series(observe::Metrics& metrics, const MetricSelection& of, QueryTime time);

// Evaluates the queries with the ids in `wanted`, and what they need. A number becomes a series of
// one value at each period of the finest metric. Errors also: those of check_queries.
Result<std::map<std::string, std::vector<Series>>> evaluate(observe::Metrics& metrics,
                                                            const std::vector<Query>& queries,
                                                            const std::vector<std::string>& wanted,
                                                            QueryTime time);

}  // namespace trainyard::metric_math
