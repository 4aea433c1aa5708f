#include <algorithm>
#include <cmath>
#include <optional>

#include "metric_math/expression_node.hpp"

namespace trainyard::metric_math {
namespace {

double apply_to_numbers(Operator operation, double left, double right) {
  switch (operation) {
    case Operator::add:
      return left + right;
    case Operator::subtract:
      return left - right;
    case Operator::multiply:
      return left * right;
    case Operator::divide:
      return left / right;
    case Operator::power:
      return std::pow(left, right);
    case Operator::equal:
      return left == right;
    case Operator::unequal:
      return left != right;
    case Operator::less:
      return left < right;
    case Operator::less_or_equal:
      return left <= right;
    case Operator::greater:
      return left > right;
    case Operator::greater_or_equal:
      return left >= right;
    case Operator::both:
      return left != 0 && right != 0;
    case Operator::either:
      return left != 0 || right != 0;
  }
  return 0;
}

// Adds a point unless the value is not finite, as after a division by zero.
void add(std::vector<Point>& points, Instant at, double value) {
  if (std::isfinite(value)) points.push_back({at, value});
}

// The result has values at the times at which both series have one.
Series apply_to_series(Operator operation, const Series& left, const Series& right) {
  Series out{left.label, std::max(left.period, right.period), {}};
  auto other = right.points.begin();
  for (const Point& each : left.points) {
    while (other != right.points.end() && other->at < each.at) ++other;
    if (other == right.points.end()) break;
    if (other->at == each.at)
      add(out.points, each.at, apply_to_numbers(operation, each.value, other->value));
  }
  return out;
}

}  // namespace

Result<void> ValueBudget::use(size_t values) {
  // Each step counts one more value, so that steps on empty series are limited, too.
  if (values + 1 > left_) return invalid("The expression computes too many values");
  left_ -= values + 1;
  return ok();
}

Result<Value> apply(Operator operation, const Value& left, const Value& right,
                    ValueBudget& budget) {
  for (const Value* each : {&left, &right})
    for (const Series& series : each->series) TRY(budget.use(series.points.size()));
  const auto with_number = [&](const Value& series, double number, bool number_first) {
    Value out = series;
    for (Series& each : out.series) {
      std::vector<Point> points;
      points.reserve(each.points.size());
      for (const Point& point : each.points)
        add(points, point.at,
            number_first ? apply_to_numbers(operation, number, point.value)
                         : apply_to_numbers(operation, point.value, number));
      each.points = std::move(points);
    }
    return out;
  };
  using Holds = Value::Holds;
  if (left.holds == Holds::number && right.holds == Holds::number)
    return Value::of(apply_to_numbers(operation, left.number, right.number));
  if (right.holds == Holds::number) return with_number(left, right.number, false);
  if (left.holds == Holds::number) return with_number(right, left.number, true);
  const bool both_several = left.holds == Holds::several && right.holds == Holds::several;
  if (both_several && left.series.size() != right.series.size())
    return invalid("Two lists of different lengths cannot be combined");
  Value out = left.holds == Holds::several ? left : right;
  for (size_t i = 0; i < out.series.size(); ++i) {
    const Series& one = left.series[left.holds == Holds::several ? i : 0];
    const Series& other = right.series[right.holds == Holds::several ? i : 0];
    TRY(budget.use(one.points.size() + other.points.size()));
    std::string label = std::move(out.series[i].label);
    out.series[i] = apply_to_series(operation, one, other);
    out.series[i].label = std::move(label);
  }
  return out;
}

}  // namespace trainyard::metric_math
