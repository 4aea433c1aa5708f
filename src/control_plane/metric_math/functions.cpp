#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "base/check.hpp"
#include "metric_math/expression_node.hpp"

namespace trainyard::metric_math {
namespace {

using Holds = Value::Holds;
using Numbers = std::vector<double>;

constexpr size_t kArgumentsMax = 500;  // for functions that accept any number of arguments

// -- reductions of the numbers of a series, or of several series at one instant

double sum_of(std::span<const double> numbers) {
  double sum = 0;
  for (const double each : numbers) sum += each;
  return sum;
}

double deviation_of(std::span<const double> numbers) {
  const double mean = sum_of(numbers) / double(numbers.size());
  double squares = 0;
  for (const double each : numbers) squares += (each - mean) * (each - mean);
  return std::sqrt(squares / double(numbers.size()));
}

// Returns nullopt for other functions. Requires: numbers is not empty.
std::optional<double> reduce(std::string_view function, std::span<const double> numbers) {
  if (function == "SUM") return sum_of(numbers);
  if (function == "AVG") return sum_of(numbers) / double(numbers.size());
  if (function == "MIN") return *std::ranges::min_element(numbers);
  if (function == "MAX") return *std::ranges::max_element(numbers);
  if (function == "STDDEV") return deviation_of(numbers);
  if (function == "FIRST") return numbers.front();
  if (function == "LAST") return numbers.back();
  return {};
}

Numbers numbers_of(const Series& series) {
  Numbers numbers;
  numbers.reserve(series.points.size());
  for (const Point& each : series.points) numbers.push_back(each.value);
  return numbers;
}

// Returns the series of all arguments; a number becomes a series at the times of the others.
Result<std::vector<Series>> series_of(const std::vector<Argument>& arguments, ValueBudget& budget) {
  std::vector<Series> all;
  for (const Argument& each : arguments) {
    if (each.is_text) return invalid("A text is not a series");
    all.insert(all.end(), each.value.series.begin(), each.value.series.end());
  }
  std::vector<Instant> times;
  for (const Series& each : all)
    for (const Point& point : each.points) times.push_back(point.at);
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  for (const Argument& each : arguments) {
    if (each.value.holds != Holds::number) continue;
    Series constant;
    TRY(budget.use(times.size()));
    for (const Instant at : times) constant.points.push_back({at, each.value.number});
    all.push_back(std::move(constant));
  }
  return all;
}

// Evaluates SUM, AVG, MIN, MAX and STDDEV. The result is a number for one series, and for several
// series a series of the results of each instant.
Result<Value> call_reduce(std::string_view function, const std::vector<Argument>& arguments,
                          ValueBudget& budget) {
  const bool alone = arguments.size() == 1;
  const bool numbers_only = std::ranges::all_of(arguments, [](const Argument& each) {
    return !each.is_text && each.value.holds == Holds::number;
  });
  if (numbers_only) {
    Numbers numbers;
    for (const Argument& each : arguments) numbers.push_back(each.value.number);
    return Value::of(*reduce(function, numbers));
  }
  if (alone && arguments[0].value.holds == Holds::series) {
    const Numbers numbers = numbers_of(arguments[0].value.series[0]);
    TRY(budget.use(numbers.size()));
    // The result for an empty series is an empty series.
    if (numbers.empty()) return Value::of(Series{});
    return Value::of(*reduce(function, numbers));
  }
  const auto all = TRY(series_of(arguments, budget));
  std::map<Instant, Numbers> by_time;
  Series out;
  out.period = 0ms;
  for (const Series& each : all) {
    TRY(budget.use(each.points.size()));
    for (const Point& point : each.points) by_time[point.at].push_back(point.value);
    if (!each.label.empty()) out.period = std::max(out.period, each.period);
  }
  if (out.period == 0ms) out.period = all.empty() ? 60s : all.front().period;
  for (const auto& [at, numbers] : by_time)
    if (const double value = *reduce(function, numbers); std::isfinite(value))
      out.points.push_back({at, value});
  return Value::of(std::move(out));
}

// -- functions of each point

int64_t floor_div(int64_t value, int64_t by) {
  return value / by - (value % by != 0 && (value < 0) != (by < 0));
}

std::optional<double> time_part(std::string_view function, Instant at) {
  using std::chrono::days;
  const auto day = std::chrono::floor<days>(at);
  const std::chrono::year_month_day date(day);
  if (function == "EPOCH") return double(floor_div(to_milliseconds(at), 1000));
  if (function == "MINUTE") return double((at - day) / 1min % 60);
  if (function == "HOUR") return double((at - day) / 1h);
  if (function == "DAY")  // Monday is 1, as on AWS
    return double(std::chrono::weekday(day).iso_encoding());
  if (function == "DATE") return double(unsigned(date.day()));
  if (function == "MONTH") return double(unsigned(date.month()));
  if (function == "YEAR") return double(int(date.year()));
  return {};
}

std::optional<double> of_each(std::string_view function, Instant at, double value) {
  if (function == "ABS") return std::abs(value);
  if (function == "CEIL") return std::ceil(value);
  if (function == "FLOOR") return std::floor(value);
  if (function == "LOG") return std::log(value);
  if (function == "LOG10") return std::log10(value);
  return time_part(function, at);
}

std::optional<double> of_neighbours(std::string_view function, const Point& former,
                                    const Point& point) {
  const double seconds = double((point.at - former.at).count()) / 1000;
  if (function == "DIFF") return point.value - former.value;
  if (function == "DIFF_TIME") return seconds;
  if (function == "RATE") return (point.value - former.value) / seconds;
  return {};
}

std::vector<Point> map_points(std::string_view function, const std::vector<Point>& points) {
  std::vector<Point> out;
  const auto add = [&](Instant at, double value) {
    if (std::isfinite(value)) out.push_back({at, value});
  };
  double running = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (function == "RUNNING_SUM") {
      add(points[i].at, running += points[i].value);
    } else if (const auto mapped = of_each(function, points[i].at, points[i].value)) {
      add(points[i].at, *mapped);
    } else if (i > 0) {
      add(points[i].at, *of_neighbours(function, points[i - 1], points[i]));
    }
  }
  return out;
}

constexpr std::string_view kMapped[] = {
    "ABS",   "CEIL", "FLOOR",  "LOG",  "LOG10", "EPOCH", "DAY",       "DATE",
    "MONTH", "YEAR", "MINUTE", "HOUR", "DIFF",  "RATE",  "DIFF_TIME", "RUNNING_SUM"};

Result<Value> call_mapped(std::string_view function, Value value, ValueBudget& budget) {
  if (value.holds == Holds::number) {
    const auto mapped = of_each(function, Instant{}, value.number);
    if (!mapped || time_part(function, Instant{}))
      return invalid("Function " + std::string(function) + " takes a series");
    return Value::of(*mapped);
  }
  for (Series& each : value.series) {
    TRY(budget.use(each.points.size()));
    each.points = map_points(function, each.points);
  }
  return value;
}

// -- functions with special arguments

// Returns the times at which a series may have values.
Result<std::vector<Instant>> grid_of(const Series& series, const Scope& scope,
                                     ValueBudget& budget) {
  std::vector<Instant> grid;
  CHECK(series.period > 0ms, "a series has a period");
  if (scope.to <= scope.from) return grid;
  TRY(budget.use(size_t((scope.to - scope.from) / series.period)));
  for (Instant at = scope.from; at < scope.to; at += series.period) grid.push_back(at);
  return grid;
}

// Returns a value between two points: that of the previous point, or on the line between them.
double between(const Point& former, const Point& next, Instant at, bool linear) {
  if (!linear) return former.value;
  const double part = double((at - former.at).count()) / double((next.at - former.at).count());
  return former.value + part * (next.value - former.value);
}

Result<Series> fill(const Series& series, const Argument& with, const Scope& scope,
                    ValueBudget& budget) {
  const bool repeat = with.text == "REPEAT", linear = with.text == "LINEAR";
  if (with.is_text && !repeat && !linear) return invalid("FILL takes REPEAT, LINEAR or a number");
  if (with.value.holds == Holds::several) return invalid("FILL takes one series");
  std::map<Instant, double> other;
  if (!with.is_text)
    for (const Series& each : with.value.series)
      for (const Point& point : each.points) other.emplace(point.at, point.value);
  Series out{series.label, series.period, {}};
  const auto grid = TRY(grid_of(series, scope, budget));
  size_t next = 0;  // the first point at or after the instant
  for (const Instant at : grid) {
    while (next < series.points.size() && series.points[next].at < at) ++next;
    const bool has_next = next < series.points.size();
    if (has_next && series.points[next].at == at) {
      out.points.push_back(series.points[next]);
    } else if (with.is_text) {
      if (next > 0 && (repeat || has_next))
        out.points.push_back({at, between(series.points[next - 1],
                                          series.points[has_next ? next : next - 1], at, linear)});
    } else if (with.value.holds == Holds::number) {
      out.points.push_back({at, with.value.number});
    } else if (const auto found = other.find(at); found != other.end()) {
      out.points.push_back({at, found->second});
    }
  }
  return out;
}

Result<Value> call_fill(std::vector<Argument> arguments, const Scope& scope, ValueBudget& budget) {
  Value& value = arguments[0].value;
  if (value.holds == Holds::number) return value;
  for (Series& each : value.series) each = TRY(fill(each, arguments[1], scope, budget));
  return value;
}

// IF(condition, then[, otherwise]) is evaluated at each instant of the condition.
Result<Value> call_if(const std::vector<Argument>& arguments, ValueBudget& budget) {
  for (const Argument& each : arguments)
    if (each.is_text || each.value.holds == Holds::several)
      return invalid("IF takes numbers and single series");
  const Value& condition = arguments[0].value;
  if (condition.holds == Holds::number) {
    if (condition.number != 0) return arguments[1].value;
    return arguments.size() > 2 ? arguments[2].value : Value::of(Series{});
  }
  const Series& of = condition.series[0];
  TRY(budget.use(of.points.size()));
  const auto lookup = [](const Value& value, Instant at) -> std::optional<double> {
    if (value.holds == Holds::number) return value.number;
    const auto& points = value.series[0].points;
    const auto found = std::ranges::lower_bound(points, at, {}, &Point::at);
    if (found == points.end() || found->at != at) return {};
    return found->value;
  };
  Series out{of.label, of.period, {}};
  for (const Point& each : of.points) {
    const size_t chosen = each.value != 0 ? 1 : 2;
    if (chosen >= arguments.size()) continue;
    if (const auto value = lookup(arguments[chosen].value, each.at))
      out.points.push_back({each.at, *value});
  }
  return Value::of(std::move(out));
}

Result<double> number_in(const Argument& argument, std::string_view function) {
  if (argument.is_text || argument.value.holds != Holds::number)
    return invalid("Function " + std::string(function) + ": an argument must be a number");
  return argument.value.number;
}

// SLICE(several, start[, end]).
Result<Value> call_slice(std::vector<Argument> arguments) {
  Value& value = arguments[0].value;
  const double start = TRY(number_in(arguments[1], "SLICE"));
  const double end =
      arguments.size() > 2 ? TRY(number_in(arguments[2], "SLICE")) : double(value.series.size());
  const auto clamp = [&](double at) {
    return size_t(std::min(std::max(at, 0.0), double(value.series.size())));
  };
  const size_t first = clamp(start), last = std::max(first, clamp(end));
  return Value::of(
      std::vector<Series>(value.series.begin() + long(first), value.series.begin() + long(last)));
}

// SORT(several, AVG | MIN | MAX | SUM | FIRST | LAST, ASC | DESC[, count]).
Result<Value> call_sort(std::vector<Argument> arguments, ValueBudget& budget) {
  auto& series = arguments[0].value.series;
  const std::string& statistic = arguments[1].text;
  const std::string& order = arguments[2].text;
  if (!reduce(statistic, Numbers{0}) || (order != "ASC" && order != "DESC"))
    return invalid("SORT takes AVG, MIN, MAX or SUM, and ASC or DESC");
  std::vector<std::pair<double, size_t>> ranks;
  for (size_t i = 0; i < series.size(); ++i) {
    TRY(budget.use(series[i].points.size()));
    const Numbers numbers = numbers_of(series[i]);
    // Empty series come last.
    const double rank = numbers.empty() ? INFINITY : *reduce(statistic, numbers);
    ranks.emplace_back(order == "DESC" && !numbers.empty() ? -rank : rank, i);
  }
  std::ranges::stable_sort(ranks, {}, &std::pair<double, size_t>::first);
  double count = double(ranks.size());
  if (arguments.size() > 3) count = std::min(count, TRY(number_in(arguments[3], "SORT")));
  std::vector<Series> out;
  for (size_t i = 0; i < ranks.size() && double(i) < count; ++i)
    out.push_back(series[ranks[i].second]);
  return Value::of(std::move(out));
}

Result<Value> call_metrics(const std::vector<Argument>& arguments, const Scope& scope,
                           ValueBudget& budget) {
  if (!arguments.empty() && !arguments[0].is_text) return invalid("METRICS takes a text");
  std::vector<Series> all;
  for (const std::string& id : scope.metric_ids) {
    if (!arguments.empty() && id.find(arguments[0].text) == std::string::npos) continue;
    const Value value = TRY(scope.value_of(id));
    for (const Series& each : value.series) {
      TRY(budget.use(each.points.size()));
      all.push_back(each);
    }
  }
  return Value::of(std::move(all));
}

Result<Value> call_time_series(const Argument& argument, const Scope& scope, ValueBudget& budget) {
  const double number = TRY(number_in(argument, "TIME_SERIES"));
  Series out;
  for (const Instant at : TRY(grid_of(out, scope, budget))) out.points.push_back({at, number});
  return Value::of(std::move(out));
}

Result<Value> call_count(std::string_view function, const Value& value) {
  if (function == "METRIC_COUNT") return Value::of(double(value.series.size()));
  if (value.holds != Holds::series)
    return invalid("Function " + std::string(function) + " takes one series");
  const Series& series = value.series[0];
  if (function == "PERIOD") return Value::of(double(series.period.count()) / 1000);
  return Value::of(double(series.points.size()));
}

Result<Value> call_on_list(std::string_view function, std::vector<Argument> arguments,
                           ValueBudget& budget) {
  Value& value = arguments[0].value;
  if (function == "SLICE") return call_slice(std::move(arguments));
  if (function == "SORT") return call_sort(std::move(arguments), budget);
  if (function == "REMOVE_EMPTY") {
    std::erase_if(value.series, [](const Series& each) { return each.points.empty(); });
    return Value::of(std::move(value.series));
  }
  CHECK(function == "FIRST" || function == "LAST", "the function has a branch");
  if (value.series.empty()) return Value::of(Series{});
  return Value::of(function == "FIRST" ? value.series.front() : value.series.back());
}

struct FunctionRow {
  std::string_view name;
  Arity arity;
};

constexpr FunctionRow kFunctions[] = {{"[]", {1, kArgumentsMax}},
                                      {"AVG", {1, kArgumentsMax}},
                                      {"DATAPOINT_COUNT", {1, 1}},
                                      {"FILL", {2, 2}},
                                      {"FIRST", {1, 1}},
                                      {"IF", {2, 3}},
                                      {"LAST", {1, 1}},
                                      {"MAX", {1, kArgumentsMax}},
                                      {"METRICS", {0, 1}},
                                      {"METRIC_COUNT", {1, 1}},
                                      {"MIN", {1, kArgumentsMax}},
                                      {"PERIOD", {1, 1}},
                                      {"REMOVE_EMPTY", {1, 1}},
                                      {"SLICE", {2, 3}},
                                      {"SORT", {3, 4}},
                                      {"STDDEV", {1, kArgumentsMax}},
                                      {"SUM", {1, kArgumentsMax}},
                                      {"TIME_SERIES", {1, 1}}};

}  // namespace

std::optional<Arity> arity_of(std::string_view function) {
  if (std::ranges::find(kMapped, function) != std::end(kMapped)) return Arity{1, 1};
  const auto row = std::ranges::find(kFunctions, function, &FunctionRow::name);
  if (row == std::end(kFunctions)) return {};
  return row->arity;
}

Result<Value> call(std::string_view function, std::vector<Argument> arguments, const Scope& scope,
                   ValueBudget& budget) {
  if (function == "METRICS") return call_metrics(arguments, scope, budget);
  if (arguments[0].is_text) return invalid("A text is not a series");
  if (std::ranges::find(kMapped, function) != std::end(kMapped))
    return call_mapped(function, std::move(arguments[0].value), budget);
  if (function == "FILL") return call_fill(std::move(arguments), scope, budget);
  if (function == "IF") return call_if(arguments, budget);
  if (function == "[]") return Value::of(TRY(series_of(arguments, budget)));
  if (function == "TIME_SERIES") return call_time_series(arguments[0], scope, budget);
  if (function == "PERIOD" || function == "DATAPOINT_COUNT" || function == "METRIC_COUNT")
    return call_count(function, arguments[0].value);
  const bool reduces = function == "SUM" || function == "AVG" || function == "MIN" ||
                       function == "MAX" || function == "STDDEV";
  if (reduces) return call_reduce(function, arguments, budget);
  return call_on_list(function, std::move(arguments), budget);
}

}  // namespace trainyard::metric_math
