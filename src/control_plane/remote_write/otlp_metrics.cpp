#include "remote_write/otlp_metrics.hpp"

#include <cmath>

#include "base/json.hpp"

namespace trainyard::remote_write {
namespace {

constexpr int kCumulative = 2;  // AGGREGATION_TEMPORALITY_CUMULATIVE
constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;

// Protocol buffers' JSON has 64 bit numbers as strings. Requires: a time that CloudWatch accepts.
std::string nanoseconds_text(int64_t milliseconds) {
  return std::to_string(milliseconds * kNanosecondsPerMillisecond);
}

Json number_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json attribute(std::string_view key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}

Json metric_of(const TimeSeries& series, Instant started) {
  std::string name;
  Json attributes = Json::array();
  for (const auto& [label, value] : series.labels) {
    if (label == "__name__")
      name = value;
    else if (label != "job" && label != "instance")
      attributes.push_back(attribute(label, value));
  }
  const bool is_sum = name.ends_with("_total");
  Json points = Json::array();
  for (const WriteSample& sample : series.samples) {
    Json point{{"attributes", attributes},
               {"timeUnixNano", nanoseconds_text(sample.milliseconds)},
               {"asDouble", number_json(sample.value)}};
    if (is_sum) point["startTimeUnixNano"] = nanoseconds_text(to_milliseconds(started));
    points.push_back(std::move(point));
  }
  if (!is_sum) return {{"name", name}, {"gauge", {{"dataPoints", std::move(points)}}}};
  return {{"name", name},
          {"sum",
           {{"aggregationTemporality", kCumulative},
            {"isMonotonic", true},
            {"dataPoints", std::move(points)}}}};
}

// Returns the resource of the first series, which is the resource of all.
Json resource_of(const std::vector<TimeSeries>& series) {
  Json attributes = Json::array();
  if (!series.empty())
    for (const auto& [label, value] : series.front().labels) {
      if (label == "job") attributes.push_back(attribute("service.name", value));
      if (label == "instance") attributes.push_back(attribute("service.instance.id", value));
    }
  return {{"attributes", std::move(attributes)}};
}

}  // namespace

std::string otlp_metrics_of(const std::vector<TimeSeries>& series, Instant started) {
  Json metrics = Json::array();
  for (const TimeSeries& each : series) metrics.push_back(metric_of(each, started));
  const Json scope{{"scope", {{"name", "trainyard"}}}, {"metrics", std::move(metrics)}};
  const Json resource{{"resource", resource_of(series)}, {"scopeMetrics", Json::array({scope})}};
  return Json{{"resourceMetrics", Json::array({resource})}}.dump();
}

}  // namespace trainyard::remote_write
