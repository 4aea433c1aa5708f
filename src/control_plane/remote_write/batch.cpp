#include "remote_write/batch.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "base/check.hpp"

namespace trainyard::remote_write {
namespace {

constexpr size_t kKnownSeriesMax = 200'000;  // some 60 MB
constexpr Duration kRetryDelayMin = 500ms;
constexpr Duration kRetryDelayMax = 30s;
constexpr uint32_t kDoublingsMax = 6;
// The statuses with which receivers reject points; Thanos uses 409 for samples out of order.
constexpr std::array kRejections{400, 409, 413, 415, 422};

// Returns a text that is unique for these labels.
std::string text_of(const SeriesLabels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text.append(name).append(1, '\0').append(value).append(1, '\0');
  return text;
}

}  // namespace

Batch BatchMaker::make(const std::vector<observe::MetricRecord>& records) {
  // Without the known series, old samples may be sent; the receiver then rejects the request, which
  // is split.
  if (known_.size() > kKnownSeriesMax) known_.clear();
  Batch batch;
  std::map<observe::MetricKey, std::vector<observe::Sample>> by_key;
  for (const auto& [key, sample] : records)
    if (sample.count > 0) by_key[key].push_back(sample);
  for (auto& [key, samples] : by_key) {
    NamedSeries named = name_series_(key);
    std::ranges::sort(named.labels);
    Known& known = known_[text_of(named.labels)];
    std::ranges::stable_sort(samples, {}, &observe::Sample::at);
    TimeSeries series;
    for (const observe::Sample& sample : samples) {
      const int64_t at = to_milliseconds(sample.at);
      known.total += sample.sum;
      const double value = named.counter ? known.total : sample.sum / sample.count * named.factor;
      if (!series.samples.empty() && series.samples.back().milliseconds == at) {
        series.samples.back().value = value;
      } else if (at <= known.last) {
        ++batch.left_out;
      } else {
        series.samples.push_back({value, at});
      }
    }
    if (series.samples.empty()) continue;
    known.last = series.samples.back().milliseconds;
    batch.samples += series.samples.size();
    series.labels = std::move(named.labels);
    batch.series.push_back(std::move(series));
  }
  return batch;
}

Outcome outcome_of(int status) {
  if (status >= 200 && status < 300) return Outcome::accepted;
  // The other failures do not depend on the points: an invalid token, a receiver that is down.
  const bool rejected = std::ranges::find(kRejections, status) != kRejections.end();
  return rejected ? Outcome::rejected : Outcome::retry;
}

Duration retry_delay(uint32_t failures) {
  const uint32_t doublings = std::min(failures == 0 ? 0 : failures - 1, kDoublingsMax);
  return std::min(kRetryDelayMin * (1 << doublings), kRetryDelayMax);
}

std::pair<std::vector<TimeSeries>, std::vector<TimeSeries>> split_series(
    std::vector<TimeSeries> series) {
  std::pair<std::vector<TimeSeries>, std::vector<TimeSeries>> parts;
  if (series.size() > 1) {
    const auto middle = series.begin() + std::ptrdiff_t(series.size() / 2);
    parts.first.assign(std::make_move_iterator(series.begin()), std::make_move_iterator(middle));
    parts.second.assign(std::make_move_iterator(middle), std::make_move_iterator(series.end()));
    return parts;
  }
  CHECK(series.size() == 1 && series[0].samples.size() > 1, "one sample cannot be split");
  auto& samples = series[0].samples;
  const auto middle = samples.begin() + std::ptrdiff_t(samples.size() / 2);
  TimeSeries second;
  second.labels = series[0].labels;
  second.samples.assign(middle, samples.end());
  samples.erase(middle, samples.end());
  parts.first = std::move(series);
  parts.second.push_back(std::move(second));
  return parts;
}

}  // namespace trainyard::remote_write
