// An Expression computes series from series: "100 * errors / FILL(requests, 1)".
//
// Operators: + - * / ^, comparisons (1 or 0), AND, OR. The result of an operation on two series has
// values at the times at which both have one. Functions: ABS AVG CEIL DATAPOINT_COUNT DATE DAY DIFF
// DIFF_TIME EPOCH FILL FIRST FLOOR HOUR IF LAST LOG LOG10 MAX METRICS METRIC_COUNT MIN MINUTE MONTH
// PERIOD RATE REMOVE_EMPTY RUNNING_SUM SLICE SORT STDDEV SUM TIME_SERIES YEAR. The case of function
// names is ignored.
//
// Threads: immutable after parse(). Errors: invalid, with the error in the expression.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::metric_math {

// Limits of one expression. Nested functions and parentheses count as levels.
inline constexpr size_t kExpressionBytesMax = 2048;
inline constexpr int kExpressionLevelsMax = 32;
// Values that one expression may compute in all of its steps. Limits its time and memory.
inline constexpr size_t kValuesComputedMax = 5'000'000;

struct Point {
  Instant at;
  double value = 0;
  bool operator==(const Point&) const = default;
};

struct Series {
  std::string label;
  Duration period = 60s;
  std::vector<Point> points;  // by time, without duplicates
};

// A Value is a number, a series, or several series.
struct Value {
  enum class Holds { number, series, several };
  Holds holds = Holds::number;
  double number = 0;
  std::vector<Series> series;  // one for Holds::series

  static Value of(double number) { return {Holds::number, number, {}}; }
  static Value of(Series one) {
    Value value{Holds::series, 0, {}};
    value.series.push_back(std::move(one));
    return value;
  }
  static Value of(std::vector<Series> all) { return {Holds::several, 0, std::move(all)}; }
};

// The queries to which an expression may refer.
struct Scope {
  // Returns the value of the query with that id. Errors: invalid.
  std::function<Result<Value>(const std::string& id)> value_of;
  // The ids of the queries that are metrics, in their order: for METRICS().
  std::vector<std::string> metric_ids;
  // Series may have values at the times from, from + period, .. below `to`.
  Instant from, to;
};

class Expression {
 public:
  static Result<Expression> parse(std::string_view text);
  Result<Value> evaluate(const Scope& scope) const;
  // Returns the ids in the expression. METRICS() adds none.
  const std::set<std::string>& ids() const { return ids_; }
  bool uses_all_metrics() const { return uses_all_metrics_; }

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
  std::set<std::string> ids_;
  bool uses_all_metrics_ = false;
};

}  // namespace trainyard::metric_math
