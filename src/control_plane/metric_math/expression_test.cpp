#include "metric_math/expression.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>

namespace trainyard::metric_math {
namespace {

constexpr Instant kStart = Instant{Duration{1'763'632'020'000 / 3'600'000 * 3'600'000}};

Instant minute(int number) { return kStart + number * Duration(1min); }

Series series(const std::string& label, std::vector<std::optional<double>> values) {
  Series out{label, 60s, {}};
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i]) out.points.push_back({minute(int(i)), *values[i]});
  return out;
}

const std::map<std::string, Series> kSeries = {{"m1", series("m1", {1, 2, 3, 4})},
                                               {"m2", series("m2", {10, {}, 30, 0})},
                                               {"errors1", series("errors1", {{}, {}, {}, 8})},
                                               {"empty", series("empty", {})}};

Result<Value> value_of(std::string_view text) {
  const auto expression = TRY(Expression::parse(text));
  return expression.evaluate({.value_of = [](const std::string& id) -> Result<Value> {
                                const auto found = kSeries.find(id);
                                if (found == kSeries.end())
                                  return invalid("Undefined id '" + id + "'");
                                return Value::of(found->second);
                              },
                              .metric_ids = {"m1", "m2", "errors1", "empty"},
                              .from = kStart,
                              .to = minute(4)});
}

// Returns "5", "0=1 3=4" (minutes and values), "[0=1; 1=2]" (several series), or the error.
std::string text_of(std::string_view expression) {
  const auto value = value_of(expression);
  if (!value) return "error: " + value.error().message;
  const auto number = [](double each) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", each);
    return std::string(text);
  };
  if (value->holds == Value::Holds::number) return number(value->number);
  std::string all;
  for (const Series& each : value->series) {
    std::string points;
    for (const Point& point : each.points)
      points += (points.empty() ? "" : " ") + std::to_string((point.at - kStart) / 1min) + "=" +
                number(point.value);
    all += (all.empty() ? "" : "; ") + points;
  }
  return value->holds == Value::Holds::several ? "[" + all + "]" : all;
}

struct Row {
  std::string_view expression, expected;
};

TEST(Expression, AppliesOperators) {
  for (const Row& row : std::initializer_list<Row>{
           {"1 + 2 * 3", "7"},
           {"(1 + 2) * 3", "9"},
           {"2 ^ 3 ^ 2", "512"},
           {"-2 ^ 2", "4"},
           {"7 - 2 - 1", "4"},
           {"1e3 / 8", "125"},
           {"1 < 2", "1"},
           {"1 == 2 OR 2 != 3 AND 0", "0"},
           {"m1", "0=1 1=2 2=3 3=4"},
           {"m1 * 10", "0=10 1=20 2=30 3=40"},
           {"10 - m1", "0=9 1=8 2=7 3=6"},
           {"m1 + m2", "0=11 2=33 3=4"},
           {"m1 / m2", "0=0.1 2=0.1"},
           {"m1 > 2 && m1 < 4", "0=0 1=0 2=1 3=0"},
           {"m1 >= 2 || m1 <= 0", "0=0 1=1 2=1 3=1"},
           {"-m1", "0=-1 1=-2 2=-3 3=-4"},
           {"m1 + empty", ""},
           {"[m1, m2] + 1", "[0=2 1=3 2=4 3=5; 0=11 2=31 3=1]"},
           {"[m1, m2] * m1", "[0=1 1=4 2=9 3=16; 0=10 2=90 3=0]"},
           {"[m1, m2] - [m2, m1]", "[0=-9 2=-27 3=4; 0=9 2=27 3=-4]"},
           {"METRICS() + [m1, m2]", "error: Two lists of different lengths cannot be combined"}})
    EXPECT_EQ(text_of(row.expression), row.expected) << row.expression;
}

TEST(Expression, CallsFunctions) {
  for (const Row& row :
       std::initializer_list<Row>{{"SUM(m1)", "10"},
                                  {"avg(m1)", "2.5"},
                                  {"MIN(m2)", "0"},
                                  {"MAX(1, 5, 2)", "5"},
                                  {"SUM([m1, m2])", "0=11 1=2 2=33 3=4"},
                                  {"SUM(METRICS())", "0=11 1=2 2=33 3=12"},
                                  {"AVG(METRICS(\"m\"))", "0=5.5 1=2 2=16.5 3=2"},
                                  {"MAX([m1, 2])", "0=2 1=2 2=3 3=4"},
                                  {"STDDEV(m1)", "1.11803"},
                                  {"SUM(empty)", ""},
                                  {"ABS(-m1)", "0=1 1=2 2=3 3=4"},
                                  {"CEIL(m1 / 2)", "0=1 1=1 2=2 3=2"},
                                  {"FLOOR(1.5)", "1"},
                                  {"LOG10(m2 * 10)", "0=2 2=2.47712"},
                                  {"DIFF(m1)", "1=1 2=1 3=1"},
                                  {"DIFF_TIME(m2)", "2=120 3=60"},
                                  {"RATE(m2)", "2=0.166667 3=-0.5"},
                                  {"RUNNING_SUM(m1)", "0=1 1=3 2=6 3=10"},
                                  {"FILL(m2, 5)", "0=10 1=5 2=30 3=0"},
                                  {"FILL(m2, REPEAT)", "0=10 1=10 2=30 3=0"},
                                  {"FILL(m2, LINEAR)", "0=10 1=20 2=30 3=0"},
                                  {"FILL(errors1, LINEAR)", "3=8"},
                                  {"FILL(m2, m1)", "0=10 1=2 2=30 3=0"},
                                  {"FILL(empty, 0)", "0=0 1=0 2=0 3=0"},
                                  {"IF(m1 > 2, m1, 0)", "0=0 1=0 2=3 3=4"},
                                  {"IF(m1 > 2, m2)", "2=30 3=0"},
                                  {"IF(m1, m2, m1)", "0=10 2=30 3=0"},
                                  {"IF(1, 2, 3)", "2"},
                                  {"IF(0, m1)", ""},
                                  {"PERIOD(m1)", "60"},
                                  {"SUM(m1) / PERIOD(m1)", "0.166667"},
                                  {"DATAPOINT_COUNT(m2)", "3"},
                                  {"METRIC_COUNT(METRICS())", "4"},
                                  {"METRIC_COUNT(REMOVE_EMPTY(METRICS()))", "3"},
                                  {"SLICE(METRICS(), 1, 2)", "[0=10 2=30 3=0]"},
                                  {"SLICE(METRICS(), -5, 1)", "[0=1 1=2 2=3 3=4]"},
                                  {"SLICE(METRICS(), 9)", "[]"},
                                  {"SORT(METRICS(), MAX, DESC, 1)", "[0=10 2=30 3=0]"},
                                  {"SORT(METRICS(), SUM, ASC, 2)", "[3=8; 0=1 1=2 2=3 3=4]"},
                                  {"FIRST(METRICS())", "0=1 1=2 2=3 3=4"},
                                  {"TIME_SERIES(SUM(m1))", "0=10 1=10 2=10 3=10"},
                                  {"MINUTE(m1)", "0=0 1=1 2=2 3=3"},
                                  {"SUM(m1) > 9", "1"}})
    EXPECT_EQ(text_of(row.expression), row.expected) << row.expression;
}

TEST(Expression, ComputesDatesInUtc) {
  // 2026-11-27 is a Friday.
  const Instant at = *parse_iso8601("2026-11-27T23:45:10Z");
  const auto part = [&](std::string_view function) {
    const auto value = Expression::parse(std::string(function) + "(x)")
                           ->evaluate({.value_of = [&](const std::string&) -> Result<Value> {
                             return Value::of(Series{"x", 60s, {{at, 1}}});
                           }});
    return value->series[0].points[0].value;
  };
  EXPECT_EQ(part("YEAR"), 2026);
  EXPECT_EQ(part("MONTH"), 11);
  EXPECT_EQ(part("DATE"), 27);
  EXPECT_EQ(part("DAY"), 5);
  EXPECT_EQ(part("HOUR"), 23);
  EXPECT_EQ(part("MINUTE"), 45);
  EXPECT_EQ(part("EPOCH"), double(to_milliseconds(at) / 1000));
}

TEST(Expression, ExplainsErrors) {
  for (const Row& row :
       std::initializer_list<Row>{{"", "The expression is empty"},
                                  {"m1 +", "Syntax error: the expression ends too early"},
                                  {"m1 m2", "Syntax error near 'm2'"},
                                  {"(m1", "Syntax error: the expression ends too early"},
                                  {"m1)", "Syntax error near ')'"},
                                  {"1.2.3", "Syntax error near '1.2.3'"},
                                  {"'text", "Syntax error near ''text'"},
                                  {"FROB(m1)", "Unsupported function 'FROB'"},
                                  {"ABS(m1, m2)", "Invalid number of arguments of function ABS: 2"},
                                  {"unknown + 1", "Undefined id 'unknown'"},
                                  {"'text' + 1", "'text' has no value"},
                                  {"FILL(m1, 'x')", "FILL takes REPEAT, LINEAR or a number"},
                                  {"SORT(METRICS(), P90, ASC)", "Undefined id 'P90'"},
                                  {"DIFF(3)", "Function DIFF takes a series"},
                                  {"m1; m2", "Syntax error near ';'"}})
    EXPECT_EQ(text_of(row.expression), "error: " + std::string(row.expected)) << row.expression;
}

TEST(Expression, LimitsLengthNestingAndValues) {
  EXPECT_EQ(text_of(std::string(2049, '1')),
            "error: The expression is longer than 2048 characters");
  EXPECT_EQ(text_of(std::string(1000, '(') + "1" + std::string(1000, ')')),
            "error: The expression is nested too deeply");
  EXPECT_EQ(text_of(std::string(2000, '-') + "1"), "error: The expression is nested too deeply");
  std::string powers = "1";
  for (int i = 0; i < 500; ++i) powers += "^1";
  EXPECT_EQ(text_of(powers), "error: The expression is nested too deeply");
  std::string sums = "1";
  for (int i = 0; i < 500; ++i) sums += "+1";
  EXPECT_EQ(text_of(sums), "error: The expression is too long");
  Series longest{"m", 1s, {}};
  for (int i = 0; i < 100'000; ++i) longest.points.push_back({kStart + i * Duration(1s), 1});
  std::string list = "[m";
  for (int i = 0; i < 100; ++i) list += ",m";
  const auto value = Expression::parse(list + "]")
                         ->evaluate({.value_of = [&](const std::string&) -> Result<Value> {
                           return Value::of(longest);
                         }});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message, "The expression computes too many values");
}

TEST(Expression, ListsItsIds) {
  const auto expression = Expression::parse("SUM(m1) + fill(m2, REPEAT) * m1");
  EXPECT_EQ(expression->ids(), (std::set<std::string>{"m1", "m2"}));
  EXPECT_FALSE(expression->uses_all_metrics());
  EXPECT_TRUE(Expression::parse("SUM(METRICS())")->uses_all_metrics());
}

}  // namespace
}  // namespace trainyard::metric_math
