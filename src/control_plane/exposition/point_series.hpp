// Names the series of a point of a metric: for scrapes, and for receivers of remote write, so that
// both have the same series.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "exposition/family.hpp"
#include "observe/metrics.hpp"

namespace trainyard::exposition {

// One metric that agents measure of a host, and the series that shows it.
struct HostMetric {
  std::string_view metric;  // as agents and CloudWatch name it
  std::string_view family;
  double factor;  // from the metric's unit to the family's
  std::string_view help;
  // Points are amounts since the previous one, and the series is their sum.
  bool is_counter() const { return family.ends_with("_total"); }
};
std::span<const HostMetric> host_metrics();
// Returns nullptr for a metric that agents do not measure.
const HostMetric* find_host_metric(std::string_view metric);

// Families of metrics with free names, which are the label `metric`.
inline constexpr std::string_view kJobMetric = "trainyard_job_metric";
inline constexpr std::string_view kHostMetric = "trainyard_job_host_metric";
inline constexpr std::string_view kOtherMetric = "trainyard_metric";  // for metrics without a job

// The longest value of a label that a job chooses. Longer ones are cut, and end with "~" and 16 hex
// digits of the SHA-256 of the whole value.
inline constexpr size_t kLabelBytesMax = 256;

struct PointSeries {
  std::string_view family;
  Labels labels;  // behind those of the job: host, metric
  double factor = 1;
  bool counter = false;
};
// `host` "": the metric is of the job as a whole.
PointSeries series_of(std::string_view metric, std::string_view host);
// The series of a metric that is not a job's, with the labels region, namespace, metric and
// dimensions.
PointSeries other_series_of(const observe::MetricKey& key);

}  // namespace trainyard::exposition
