// decoder: src/control_plane/metric_math/expression.cpp
//
// Parses any expression, and evaluates valid ones over short series. Input: the text.
#include <cmath>

#include "base/check.hpp"
#include "metric_math/expression.hpp"

using namespace trainyard;
using namespace trainyard::metric_math;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto expression = Expression::parse(text);
  if (!expression) {
    CHECK(expression.error().kind == Kind::invalid, "parse() has no other errors");
    return 0;
  }
  Scope scope;
  scope.to = Instant{} + 10min;
  scope.metric_ids = {"m1", "m2", "m3"};
  scope.value_of = [](const std::string& id) -> Result<Value> {
    Series series{id, 60s, {}};
    const int step = id == "m1" ? 1 : 2;
    if (id != "m3")
      for (int i = 0; i < 10; i += step)
        series.points.push_back({Instant{} + i * Duration(1min), double(i) - 4});
    return Value::of(std::move(series));
  };
  const auto value = expression->evaluate(scope);
  if (!value) return 0;
  for (const Series& each : value->series) {
    CHECK(each.period > 0ms, "the period of a series is positive");
    for (size_t i = 0; i < each.points.size(); ++i) {
      CHECK(std::isfinite(each.points[i].value), "points are finite");
      CHECK(i == 0 || each.points[i - 1].at < each.points[i].at, "points are in order");
    }
  }
  return 0;
}
