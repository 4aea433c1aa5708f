// Metrics stores the points of metrics, which are identified by region, namespace, name and
// dimensions. An append is durable when it returns.
//
// Threads: callable from anywhere. Errors: invalid, also for a unit of more than kUnitBytesMax;
// exhausted (disk full); corrupt.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::observe {

struct MetricKey {
  std::string region;
  std::string name_space;
  std::string name;
  std::map<std::string, std::string> dimensions;
  auto operator<=>(const MetricKey&) const = default;
};

// A Sample is one value, or a statistic set of several values. A single value has count 1 and sum =
// minimum = maximum = value.
struct Sample {
  Instant at;
  double count = 1;
  double sum = 0;
  double minimum = 0;
  double maximum = 0;
  std::string unit = "None";
};
Sample sample_of(Instant at, double value, std::string unit = "None");

inline constexpr size_t kUnitBytesMax = 1024;  // the longest unit of AWS has 16

struct MetricRecord {
  MetricKey key;
  Sample sample;
};

// Samples of one metric, in the order of their append.
struct MetricSeries {
  MetricKey key;
  std::vector<Sample> samples;
};

struct StatisticsQuery {
  MetricKey key;
  Instant from;  // inclusive; periods are counted from here, as on AWS
  Instant to;    // exclusive
  Duration period = 60s;
  std::string unit;  // "": any
};

struct Datapoint {
  Instant at;  // the start of its period
  double count = 0, sum = 0, minimum = 0, maximum = 0;
  std::string unit;
  double average() const { return count == 0 ? 0 : sum / count; }
};

class Metrics {
 public:
  virtual ~Metrics() = default;
  virtual Result<void> append(const std::vector<MetricRecord>& records) = 0;
  // Appends points, except those of metrics that exceed the limit of their group. Returns the
  // number of points that it left out.
  virtual Result<uint64_t> append_allowed(const std::vector<MetricRecord>& records) = 0;
  // Does the same for points that are grouped by metric, without a copy of the key for each point.
  virtual Result<uint64_t> append_series_allowed(const std::vector<MetricSeries>& series) = 0;
  // Appends a batch exactly once. `writer` is any text that identifies an agent, which numbers its
  // batches from 1; a batch that was appended before is not appended again.
  virtual Result<void> append_batch(const std::string& writer, uint64_t batch,
                                    const std::vector<MetricRecord>& records) = 0;
  // Returns the number of the writer's last appended batch, or 0.
  virtual Result<uint64_t> last_batch(const std::string& writer) = 0;
  virtual Result<std::vector<Datapoint>> statistics(const StatisticsQuery& query) = 0;  // by time
  // Returns the samples in the order of time, as they were appended, or aggregated by retire().
  // `period` is ignored. Errors also: exhausted, if there are more than `count_max`.
  virtual Result<std::vector<Sample>> samples(const StatisticsQuery& query, size_t count_max) = 0;
  // Returns the latest sample, for FinalMetricDataList; nullopt if there is none.
  virtual Result<std::optional<Sample>> last(const MetricKey& key) = 0;
  virtual Result<std::vector<MetricKey>> list(const std::string& region,
                                              const std::string& name_space,
                                              const std::string& name) = 0;  // "": any
  // Aggregates and removes old points, as the settings say. Called periodically.
  virtual Result<void> retire(Instant now) = 0;
};

// The detail of exhausted errors of append().
enum class MetricFault { too_many_series };

// Retention, as on AWS: first all points, then one per 5 minutes and unit, then one per hour and
// unit, then none.
inline constexpr size_t kRecentPointsMax = 256 << 10;

struct MetricSettings {
  Duration raw_time = 15 * 24h;
  Duration five_minutes_time = 63 * 24h;
  Duration hours_time = 455 * 24h;
  // Returns the group of a metric, or "". A group has at most group_series_max metrics. append()
  // rejects points of further metrics (exhausted, MetricFault::too_many_series); append_allowed()
  // and append_batch() leave them out, and log this once.
  std::function<std::string(const MetricKey&)> group_of = nullptr;
  int64_t group_series_max = 10'000;
  // The number of points, of some 24 bytes each, that are kept in memory before they are moved into
  // compressed blocks. With less than some 4,000 metrics, fewer points are kept. One append may
  // exceed the limit.
  size_t recent_points_max = kRecentPointsMax;
  // The name of a sqlite::FileWatch; "": the operating system's files.
  std::string files = "";
};

// Converts the metrics in `directory` to version 1 of their format, which release 0.1.0 reads.
// open_metrics() converts them back. May be repeated after an interruption. Returns the number of
// points; 0 without metrics. Requires: the metrics are not open. Errors: as open_metrics().
Result<uint64_t> downgrade_metrics(const std::string& directory, const std::string& files = "");

// Opens the metrics, which are one file in `directory`. Format: docs/formats/metrics.md.
Result<std::unique_ptr<Metrics>> open_metrics(const std::string& directory,
                                              const MetricSettings& settings = {});

}  // namespace trainyard::observe
