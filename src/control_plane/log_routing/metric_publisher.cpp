#include "log_routing/metric_publisher.hpp"

#include <cmath>

#include "base/text.hpp"

namespace trainyard::log_routing {
namespace {

constexpr size_t kDimensionBytesMax = 1024;  // of a value, as CloudWatch

int64_t minute_of(Instant at) { return to_milliseconds(at) / 60'000; }

}  // namespace

Result<MetricPublisher> MetricPublisher::make(const std::string& region,
                                              const MetricFilter& filter) {
  TRY(filter.check());
  MetricPublisher publisher;
  publisher.region_ = region;
  publisher.filter_ = filter;
  publisher.pattern_ = TRY(observe::FilterPattern::parse(filter.pattern));
  if (filter.value.starts_with('$'))
    publisher.value_ = TRY(observe::FilterSelector::parse(filter.value));
  else
    publisher.number_ = TRY(parse_double(filter.value));
  for (const auto& [name, selector] : filter.dimensions)
    publisher.dimensions_.emplace_back(name, TRY(observe::FilterSelector::parse(selector)));
  return publisher;
}

std::optional<observe::MetricRecord> MetricPublisher::record_of(
    const observe::LogEvent& event, Instant now, const std::map<std::string, std::string>& values) {
  double number = number_;
  const observe::FilterMessage message(event.message);
  if (value_) {
    const auto text = value_->find(message, values);
    const auto parsed = text ? parse_double(*text) : Result<double>(invalid(""));
    if (!parsed || !std::isfinite(*parsed)) return {};
    number = *parsed;
  }
  observe::MetricRecord record;
  record.key = {region_, filter_.metric_namespace, filter_.metric_name, {}};
  for (const auto& [name, selector] : dimensions_) {
    auto text = selector.find(message, values);
    if (!text || text->empty() || text->size() > kDimensionBytesMax) return {};
    record.key.dimensions.emplace(name, *std::move(text));
  }
  if (!series_.contains(record.key.dimensions)) {
    if (series_.size() >= kSeriesMax) {
      ++dropped_;
      return {};
    }
    series_.insert(record.key.dimensions);
  }
  record.sample = observe::sample_of(std::min(event.at, now), number, filter_.unit);
  return record;
}

void MetricPublisher::add(const std::vector<observe::LogEvent>& events, Instant now,
                          std::vector<observe::MetricRecord>& out) {
  for (const observe::LogEvent& event : events) {
    const auto values = pattern_.extract(event.message);
    if (filter_.default_value) {
      const int64_t minute = minute_of(std::min(event.at, now));
      if (minutes_.size() < kPendingMinutesMax || minutes_.contains(minute))
        minutes_[minute] = minutes_[minute] || values.has_value();
    }
    if (!values) continue;
    if (auto record = record_of(event, now, *values)) out.push_back(*std::move(record));
  }
}

void MetricPublisher::finish_minutes(Instant now, std::vector<observe::MetricRecord>& out) {
  const int64_t present = minute_of(now);
  while (!minutes_.empty() && minutes_.begin()->first < present) {
    const auto [minute, matched] = *minutes_.begin();
    minutes_.erase(minutes_.begin());
    if (matched) continue;
    observe::MetricRecord record;
    record.key = {region_, filter_.metric_namespace, filter_.metric_name, {}};
    record.sample = observe::sample_of(from_milliseconds(minute * 60'000), *filter_.default_value,
                                       filter_.unit);
    out.push_back(std::move(record));
  }
}

}  // namespace trainyard::log_routing
