#include "remote_write/received.hpp"

#include <cmath>

namespace trainyard::remote_write {
namespace {

Result<observe::MetricKey> key_of(const TimeSeries& series, const std::string& region) {
  observe::MetricKey key;
  key.region = region;
  key.name_space = kReceivedNamespace;
  for (const auto& [name, value] : series.labels) {
    if (name == "__name__") {
      if (!key.name.empty()) return invalid("a series has two names");
      key.name = value;
    } else if (!key.dimensions.emplace(name, value).second) {
      return invalid("a series has the label '" + name + "' twice");
    }
  }
  if (key.name.empty() || key.name.size() > kNameBytesMax)
    return invalid("a series must have a name of at most " + std::to_string(kNameBytesMax) +
                   " bytes");
  if (key.dimensions.size() > kDimensionsMax)
    return invalid("a series has more than " + std::to_string(kDimensionsMax) +
                   " labels in addition to its name");
  return key;
}

// Estimates the memory that the key uses, including the overhead of containers.
size_t bytes_of(const observe::MetricKey& key) {
  constexpr size_t kLabelOverhead = 96;  // two std::string and a node of a map
  size_t bytes =
      sizeof(observe::MetricSeries) + key.region.size() + key.name_space.size() + key.name.size();
  for (const auto& [name, value] : key.dimensions)
    bytes += kLabelOverhead + name.size() + value.size();
  return bytes;
}

}  // namespace

Result<ReceivedPoints> points_of(const std::vector<TimeSeries>& series, const std::string& region,
                                 Instant now) {
  const int64_t oldest = to_milliseconds(now - kOldestSample);
  const int64_t newest = to_milliseconds(now + kNewestSample);
  ReceivedPoints points;
  size_t key_bytes = 0;
  for (const TimeSeries& each : series) {
    observe::MetricSeries metric{TRY(key_of(each, region)), {}};
    for (const WriteSample& sample : each.samples) {
      if (!std::isfinite(sample.value) || sample.milliseconds < oldest ||
          sample.milliseconds > newest) {
        ++points.left_out;
        continue;
      }
      metric.samples.push_back(
          observe::sample_of(from_milliseconds(sample.milliseconds), sample.value));
    }
    if (metric.samples.empty()) continue;
    key_bytes += bytes_of(metric.key);
    if (key_bytes > kKeyBytesMax)
      return exhausted("the names and labels of all series have more than " +
                       std::to_string(kKeyBytesMax >> 20) +
                       " MiB; send fewer series in one request");
    points.count += metric.samples.size();
    points.series.push_back(std::move(metric));
  }
  return points;
}

}  // namespace trainyard::remote_write
