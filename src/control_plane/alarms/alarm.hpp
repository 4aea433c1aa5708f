// An Alarm watches a metric, an expression over metrics, or other alarms. A change of its state
// starts its actions.
//
// Threads: plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/enum_table.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::alarms {

enum class State { ok, alarm, insufficient_data };
inline constexpr EnumTable<State> kStates{
    "state",
    {{State::ok, "ok"}, {State::alarm, "alarm"}, {State::insufficient_data, "insufficient_data"}}};

enum class Comparison {
  greater_or_equal,
  greater,
  less,
  less_or_equal,
  outside_band,  // this and the next two compare with a band of two series
  below_band,
  above_band,
};
inline constexpr EnumTable<Comparison> kComparisons{
    "comparison",
    {{Comparison::greater_or_equal, "greater_or_equal"},
     {Comparison::greater, "greater"},
     {Comparison::less, "less"},
     {Comparison::less_or_equal, "less_or_equal"},
     {Comparison::outside_band, "outside_band"},
     {Comparison::below_band, "below_band"},
     {Comparison::above_band, "above_band"}}};

// Says how a missing datapoint is treated.
enum class Missing { missing, ignore, breaching, not_breaching };
inline constexpr EnumTable<Missing> kMissings{"treatment of missing data",
                                              {{Missing::missing, "missing"},
                                               {Missing::ignore, "ignore"},
                                               {Missing::breaching, "breaching"},
                                               {Missing::not_breaching, "not_breaching"}}};

enum class AlarmKind { metric, composite };
inline constexpr EnumTable<AlarmKind> kAlarmKinds{
    "kind of alarm", {{AlarmKind::metric, "metric"}, {AlarmKind::composite, "composite"}}};

// A statistic of a metric. Dimensions keep the order in which they were given.
struct WatchedMetric {
  std::string name_space, name;
  std::vector<std::pair<std::string, std::string>> dimensions;
  std::string statistic;  // a statistic of metric_math/statistic.hpp: "Average", "p99"
  Duration period = 60s;
  std::string unit;  // "": any
  bool operator==(const WatchedMetric&) const = default;
};

// One of an alarm's queries: a metric, or an expression over the others.
struct WatchedQuery {
  std::string id;
  std::optional<WatchedMetric> metric;
  std::string expression;
  std::string label;
  std::optional<bool> returns_data;  // as requested; unset: true
  std::optional<Duration> period;    // as requested, for an expression
  std::string account;               // as requested
  bool operator==(const WatchedQuery&) const = default;
};

struct Actions {
  std::vector<std::string> ok, alarm, insufficient_data;  // ARNs
  const std::vector<std::string>& of(State state) const {
    return state == State::ok ? ok : state == State::alarm ? alarm : insufficient_data;
  }
  bool operator==(const Actions&) const = default;
};

struct AlarmKey {
  std::string region, name;
  auto operator<=>(const AlarmKey&) const = default;
};

// The settings of an alarm, as they were requested.
struct AlarmSettings {
  AlarmKind kind = AlarmKind::metric;
  std::string account;
  std::optional<std::string> description;
  bool actions_enabled = true;
  Actions actions;
  std::map<std::string, std::string> tags;

  // The following fields are for metric alarms.
  bool listed = false;                // the request had a list of queries
  std::vector<WatchedQuery> queries;  // one metric if the request had no list
  std::string watched_id;             // the query whose series is compared
  std::string threshold_id;           // the query that returns the band; "": `threshold` applies
  Comparison comparison = Comparison::greater;
  std::optional<double> threshold;
  int64_t evaluation_periods = 1;
  std::optional<int64_t> datapoints_to_alarm;   // unset: evaluation_periods
  std::optional<Missing> missing;               // unset: Missing::missing
  std::optional<std::string> low_sample_count;  // as requested: "evaluate", "ignore"

  std::string rule;  // for composite alarms

  // Returns the period of the compared datapoints: the longest period of the metrics.
  Duration period() const;
  bool operator==(const AlarmSettings&) const = default;
};

struct AlarmState {
  State value = State::insufficient_data;
  std::string reason;
  std::string reason_data;  // JSON; "": none
  Instant updated;          // when value or reason changed
  Instant transitioned;     // when the value changed
  bool operator==(const AlarmState&) const = default;
};

struct Alarm {
  AlarmKey key;
  AlarmSettings settings;
  Instant configured;  // when the settings changed
  AlarmState state;
};

enum class HistoryKind { configuration, state, action };
inline constexpr EnumTable<HistoryKind> kHistoryKinds{
    "kind of history item",
    {{HistoryKind::configuration, "configuration"},
     {HistoryKind::state, "state"},
     {HistoryKind::action, "action"}}};

struct HistoryItem {
  AlarmKey alarm;
  AlarmKind alarm_kind = AlarmKind::metric;
  Instant at;
  HistoryKind kind = HistoryKind::state;
  std::string summary;
  std::string data;  // JSON
};

// The target of the action that sends an event. Each change of a state starts this action, even if
// the alarm has no actions.
inline constexpr const char* kEventBus = "event bus";

// An action that has not been carried out yet.
struct PendingAction {
  int64_t number = 0;  // assigned by the store
  AlarmKey alarm;
  AlarmKind alarm_kind = AlarmKind::metric;
  std::string target;   // ARN, or kEventBus
  std::string message;  // JSON
  Instant created;
  int64_t attempts = 0;  // failed attempts
  Instant due;
};

Json write(const AlarmSettings& settings);
Result<AlarmSettings> read_settings(const Json& json);

}  // namespace trainyard::alarms
