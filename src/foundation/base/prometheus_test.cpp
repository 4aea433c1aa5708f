#include "base/prometheus.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(Prometheus, WritesSamplesInTheTextFormat) {
  PrometheusText text;
  text.begin("trainyard_jobs", "gauge", "Jobs by status.");
  text.sample("trainyard_jobs", {{"status", "InProgress"}}, 3);
  text.sample("trainyard_jobs", {{"status", "a\"b\\c\nd"}, {"queue", "q"}}, 12'000'000);
  text.sample("trainyard_up", {}, .25);
  EXPECT_EQ(text.text(),
            "# HELP trainyard_jobs Jobs by status.\n"
            "# TYPE trainyard_jobs gauge\n"
            "trainyard_jobs{status=\"InProgress\"} 3\n"
            "trainyard_jobs{status=\"a\\\"b\\\\c\\nd\",queue=\"q\"} 12000000\n"
            "trainyard_up 0.25\n");
}

TEST(Prometheus, HistogramBucketsAreCumulative) {
  Histogram histogram;
  for (const double seconds : {.0001, .0005, .0006, 3.0, 1000.0}) histogram.add(seconds);
  PrometheusText text;
  text.histogram("t", {{"operation", "A"}}, histogram);
  for (const char* line :
       {"t_bucket{operation=\"A\",le=\"5e-04\"} 2\n", "t_bucket{operation=\"A\",le=\"0.001\"} 3\n",
        "t_bucket{operation=\"A\",le=\"2.5\"} 3\n", "t_bucket{operation=\"A\",le=\"5\"} 4\n",
        "t_bucket{operation=\"A\",le=\"60\"} 4\n", "t_bucket{operation=\"A\",le=\"+Inf\"} 5\n",
        "t_sum{operation=\"A\"} 1003.0012\n", "t_count{operation=\"A\"} 5\n"})
    EXPECT_NE(text.text().find(line), std::string::npos) << line << text.text();
}

}  // namespace
}  // namespace trainyard
