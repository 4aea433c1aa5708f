#include "remote_write/otlp_metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.hpp"

namespace trainyard::remote_write {
namespace {

const Instant kStarted = from_milliseconds(1'763'000'000'000);

Json encoded(const std::vector<TimeSeries>& series) {
  return Json::parse(otlp_metrics_of(series, kStarted));
}

TEST(OtlpMetrics, EncodesAGaugeWithItsLabelsAndSamples) {
  const Json request = encoded({{{{"__name__", "trainyard_job_metric"},
                                  {"instance", "127.0.0.1:80"},
                                  {"job", "trainyard"},
                                  {"metric", "train:\"loss\""}},
                                 {{0.5, 1'763'000'001'000}, {0.25, 1'763'000'002'000}}}});
  EXPECT_EQ(request, Json::parse(R"({"resourceMetrics": [{
    "resource": {"attributes": [
      {"key": "service.instance.id", "value": {"stringValue": "127.0.0.1:80"}},
      {"key": "service.name", "value": {"stringValue": "trainyard"}}]},
    "scopeMetrics": [{"scope": {"name": "trainyard"}, "metrics": [
      {"name": "trainyard_job_metric", "gauge": {"dataPoints": [
        {"attributes": [{"key": "metric", "value": {"stringValue": "train:\"loss\""}}],
         "timeUnixNano": "1763000001000000000", "asDouble": 0.5},
        {"attributes": [{"key": "metric", "value": {"stringValue": "train:\"loss\""}}],
         "timeUnixNano": "1763000002000000000", "asDouble": 0.25}]}}]}]}]})"));
}

TEST(OtlpMetrics, EncodesACounterAsMonotonicSum) {
  const Json request =
      encoded({{{{"__name__", "trainyard_bytes_total"}}, {{7, 1'763'000'001'000}}}});
  const Json& metric = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
  EXPECT_EQ(metric, Json::parse(R"({"name": "trainyard_bytes_total", "sum": {
    "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [
      {"attributes": [], "timeUnixNano": "1763000001000000000",
       "startTimeUnixNano": "1763000000000000000", "asDouble": 7.0}]}})"));
}

TEST(OtlpMetrics, EncodesInfinityAndNaNAsStrings) {
  const Json request = encoded({{{{"__name__", "a"}}, {{NAN, 1}, {INFINITY, 2}, {-INFINITY, 3}}}});
  const Json& points =
      request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["gauge"]["dataPoints"];
  EXPECT_EQ(points[0]["asDouble"], "NaN");
  EXPECT_EQ(points[1]["asDouble"], "Infinity");
  EXPECT_EQ(points[2]["asDouble"], "-Infinity");
}

}  // namespace
}  // namespace trainyard::remote_write
