// Names the series to which a point of a metric belongs. Scrapes and senders of remote write both
// use these functions, so that their series are the same.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "exposition/family.hpp"
#include "observe/metrics.hpp"

namespace trainyard::exposition {

// One metric of hosts, which agents measure, and its family.
struct HostMetric {
  std::string_view metric;  // the name that agents and CloudWatch use
  std::string_view family;
  double factor;  // from the metric's unit to the family's
  std::string_view help;
  // Each point is the amount since the previous point, and the series is their sum.
  bool is_counter() const { return family.ends_with("_total"); }
};
std::span<const HostMetric> host_metrics();
// Returns nullptr for a metric that agents do not measure.
const HostMetric* find_host_metric(std::string_view metric);

// Families of metrics whose names are chosen freely; the label `metric` has the name.
inline constexpr std::string_view kJobMetric = "trainyard_job_metric";
inline constexpr std::string_view kHostMetric = "trainyard_job_host_metric";
inline constexpr std::string_view kOtherMetric = "trainyard_metric";  // for metrics without a job

// The maximum length of a label's value that a job chooses. A longer value is cut, and ends with
// "~" and 16 hex digits of the SHA-256 of the whole value.
inline constexpr size_t kLabelBytesMax = 256;

struct PointSeries {
  std::string_view family;
  Labels labels;  // appended to the labels of the job: host, metric
  double factor = 1;
  bool counter = false;
};
// `host`: "" for a metric of the job as a whole.
PointSeries series_of(std::string_view metric, std::string_view host);
// Returns the series of a metric that does not belong to a job, with the labels region, namespace,
// metric and dimensions.
PointSeries other_series_of(const observe::MetricKey& key);

}  // namespace trainyard::exposition
