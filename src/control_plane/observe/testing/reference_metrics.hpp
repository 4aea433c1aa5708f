// ReferenceMetrics is a slow and obvious implementation of metrics in memory, with which tests
// compare the stored metrics.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "observe/metrics.hpp"

namespace trainyard::observe {

class ReferenceMetrics {
 public:
  explicit ReferenceMetrics(const MetricSettings& settings) : settings_(settings) {}

  void append(const MetricKey& key, const Sample& sample) {
    auto& samples = series_[key].samples;
    samples.insert(std::ranges::upper_bound(samples, sample.at, {}, &Sample::at), sample);
  }

  std::vector<Sample> samples(const StatisticsQuery& query) const {
    std::vector<Sample> found;
    const auto series = series_.find(query.key);
    if (series == series_.end()) return found;
    for (const Sample& sample : series->second.samples)
      if (sample.at >= query.from && sample.at < query.to &&
          (query.unit.empty() || query.unit == sample.unit))
        found.push_back(sample);
    return found;
  }

  std::vector<Sample> statistics(const StatisticsQuery& query) const {
    return joined(samples(query), query.from, query.period);
  }

  std::vector<MetricKey> keys() const {
    std::vector<MetricKey> all;
    for (const auto& [key, series] : series_) all.push_back(key);
    return all;
  }

  void retire(Instant now) {
    for (auto each = series_.begin(); each != series_.end();) {
      Series& series = each->second;
      join(series, series.five_minutes_to, 5min, now - settings_.raw_time);
      join(series, series.hours_to, 1h, now - settings_.five_minutes_time);
      std::erase_if(series.samples,
                    [&](const Sample& sample) { return sample.at < now - settings_.hours_time; });
      each = series.samples.empty() ? series_.erase(each) : std::next(each);
    }
  }

 private:
  struct Series {
    std::vector<Sample> samples;  // in the order of time and appends
    Instant five_minutes_to, hours_to;
  };

  // Returns one sample for each period and unit, in that order.
  static std::vector<Sample> joined(const std::vector<Sample>& samples, Instant origin,
                                    Duration period) {
    std::map<std::pair<Instant, std::string>, Sample> periods;
    for (const Sample& sample : samples) {
      const Instant start = origin + (sample.at - origin) / period * period;
      const auto [found, added] = periods.try_emplace({start, sample.unit}, sample);
      Sample& into = found->second;
      into.at = start;
      if (added) continue;
      into.count += sample.count;
      into.sum += sample.sum;
      into.minimum = std::min(into.minimum, sample.minimum);
      into.maximum = std::max(into.maximum, sample.maximum);
    }
    std::vector<Sample> all;
    for (auto& [key, sample] : periods) all.push_back(sample);
    return all;
  }

  static void join(Series& series, Instant& begin, Duration period, Instant to) {
    const Instant end{to.time_since_epoch() / period * period};
    if (begin >= end) return;
    std::vector<Sample> before, within, after;
    for (const Sample& sample : series.samples)
      (sample.at < begin ? before : sample.at < end ? within : after).push_back(sample);
    series.samples = before;
    for (const Sample& sample : joined(within, Instant{}, period)) series.samples.push_back(sample);
    series.samples.insert(series.samples.end(), after.begin(), after.end());
    begin = end;
  }

  const MetricSettings settings_;
  std::map<MetricKey, Series> series_;
};

}  // namespace trainyard::observe
