// A MetricPublisher applies one metric filter: it converts events into samples of its metric.
//
// An event that matches publishes the filter's value at the event's time. If events arrive in a
// minute and none matches, the default value is published for that minute, after it has passed.
//
// Threads: confined to one thread. Errors: none; an event without the value or a dimension
// publishes nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "log_routing/definitions.hpp"
#include "observe/filter_pattern.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"

namespace trainyard::log_routing {

// The number of combinations of dimensions that one filter may publish until the server restarts.
// Without a limit, a request id as dimension would create a series for each line.
inline constexpr size_t kSeriesMax = 1'000;
// The number of minutes for which a default value may be pending. Events of older minutes cause no
// default value.
inline constexpr size_t kPendingMinutesMax = 60;

class MetricPublisher {
 public:
  static Result<MetricPublisher> make(const std::string& region, const MetricFilter& filter);

  void add(const std::vector<observe::LogEvent>& events, Instant now,
           std::vector<observe::MetricRecord>& out);
  // Publishes the default values of minutes that have passed.
  void finish_minutes(Instant now, std::vector<observe::MetricRecord>& out);
  // Returns the number of events that were dropped since they need a series beyond the limit.
  uint64_t dropped() const { return dropped_; }

 private:
  std::optional<observe::MetricRecord> record_of(const observe::LogEvent& event, Instant now,
                                                 const std::map<std::string, std::string>& values);

  std::string region_;
  MetricFilter filter_;
  observe::FilterPattern pattern_;
  std::optional<observe::FilterSelector> value_;  // unset: the number below
  double number_ = 0;
  std::vector<std::pair<std::string, observe::FilterSelector>> dimensions_;
  std::set<std::map<std::string, std::string>> series_;
  std::map<int64_t, bool> minutes_;  // pending minutes; true: an event matched
  uint64_t dropped_ = 0;
};

}  // namespace trainyard::log_routing
