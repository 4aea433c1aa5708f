#include "exposition/point_series.hpp"

#include <algorithm>
#include <array>

#include "base/sha256.hpp"
#include "base/text.hpp"

namespace trainyard::exposition {
namespace {

constexpr double kPercent = 0.01;
constexpr std::array kHostMetrics = {
    HostMetric{"CPUUtilization", "trainyard_job_host_cpu_used_cores", kPercent,
               "Processor cores that a host of a job uses."},
    HostMetric{"MemoryUtilization", "trainyard_job_host_memory_utilization_ratio", kPercent,
               "Share of its memory that a host of a job uses, 0 to 1."},
    HostMetric{"DiskUtilization", "trainyard_job_host_disk_utilization_ratio", kPercent,
               "Share of its disk that is used on a host of a job, 0 to 1."},
    HostMetric{"GPUUtilization", "trainyard_job_host_gpu_used_gpus", kPercent,
               "GPUs that a host of a job keeps busy: the sum of their utilization."},
    HostMetric{"GPUMemoryUtilization", "trainyard_job_host_gpu_memory_used_gpus", kPercent,
               "GPU memory that a host of a job uses, in GPUs: the sum of the shares."},
    HostMetric{"InputBytesFetched", "trainyard_job_host_input_fetched_bytes_total", 1,
               "Bytes of channels that a host of a job has read from the object store."},
    HostMetric{"InputBytesFromCache", "trainyard_job_host_input_cached_bytes_total", 1,
               "Bytes of channels that a host of a job has read from its machine's cache."},
};

// Cuts a long text and appends a hash of the whole text, so that different texts stay different.
std::string label_text(std::string_view bytes) {
  constexpr size_t kHashBytes = 8;
  constexpr size_t kKept = kLabelBytesMax - 1 - 2 * kHashBytes;  // before "~" and the hash
  std::string text = to_utf8(bytes);
  if (text.size() <= kLabelBytesMax) return text;
  size_t end = kKept;
  while (end > 0 && (uint8_t(text[end]) & 0xc0) == 0x80) --end;  // to the start of a character
  text.resize(end);
  return text + "~" + to_hex(bytes_of(sha256(bytes)).substr(0, kHashBytes));
}

}  // namespace

std::span<const HostMetric> host_metrics() { return kHostMetrics; }

const HostMetric* find_host_metric(std::string_view metric) {
  const auto found = std::ranges::find(kHostMetrics, metric, &HostMetric::metric);
  return found == kHostMetrics.end() ? nullptr : &*found;
}

PointSeries series_of(std::string_view metric, std::string_view host) {
  PointSeries series;
  const HostMetric* known = host.empty() ? nullptr : find_host_metric(metric);
  if (!host.empty()) series.labels.emplace_back("host", label_text(host));
  if (known) {
    series.family = known->family;
    series.factor = known->factor;
    series.counter = known->is_counter();
    return series;
  }
  series.family = host.empty() ? kJobMetric : kHostMetric;
  series.labels.emplace_back("metric", label_text(metric));
  return series;
}

PointSeries other_series_of(const observe::MetricKey& key) {
  std::string dimensions;
  for (const auto& [name, value] : key.dimensions)
    dimensions += (dimensions.empty() ? "" : ",") + name + "=" + value;
  PointSeries series;
  series.family = kOtherMetric;
  series.labels.reserve(4);
  series.labels.emplace_back("region", key.region);
  series.labels.emplace_back("namespace", label_text(key.name_space));
  series.labels.emplace_back("metric", label_text(key.name));
  // The name is not cut: names with the same beginning would become one series.
  series.labels.emplace_back("dimensions", to_utf8(dimensions));
  return series;
}

}  // namespace trainyard::exposition
