#include "alarms/alarm.hpp"

#include <algorithm>

#include "base/json_record.hpp"

namespace trainyard::alarms {
namespace {

// Writes the dimensions as a list of [name, value], which keeps their order.
using Dimensions = std::vector<std::pair<std::string, std::string>>;

Json to_json(const Dimensions& dimensions) {
  Json pairs = Json::array();
  for (const auto& [name, value] : dimensions) pairs.push_back({name, value});
  return pairs;
}

Result<Dimensions> dimensions_of(const Json& json) {
  Dimensions out;
  if (!json.is_array()) return invalid("dimensions: not a list");
  for (const Json& each : json) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_string())
      return invalid("dimensions: an element is not a pair of name and value");
    out.emplace_back(each[0].get<std::string>(), each[1].get<std::string>());
  }
  return out;
}

struct DimensionsForm {
  using Value = Dimensions;
  static Json write(const Dimensions& dimensions) { return to_json(dimensions); }
  static Result<void> read_into(const Json& json, Dimensions& dimensions) {
    dimensions = TRY(dimensions_of(json));
    return ok();
  }
};

constexpr auto kMetric = json_record<WatchedMetric>("metric", [](auto& side, auto& each) {
  side("namespace", each.name_space);
  side("name", each.name);
  side("dimensions", each.dimensions, DimensionsForm{});
  side("statistic", each.statistic);
  side("period", each.period);
  side.if_set("unit", each.unit);
});

constexpr auto kQuery = json_record<WatchedQuery>("query", [](auto& side, auto& each) {
  side("id", each.id);
  side.if_set("metric", each.metric, kMetric);
  side.if_set("expression", each.expression);
  side.if_set("label", each.label);
  side.if_set("returns_data", each.returns_data);
  side.if_set("period", each.period);
  side.if_set("account", each.account);
});

constexpr auto kActions = json_record<Actions>("actions", [](auto& side, auto& each) {
  side.if_set("ok", each.ok);
  side.if_set("alarm", each.alarm);
  side.if_set("insufficient_data", each.insufficient_data);
});

constexpr auto kSettings = json_record<AlarmSettings>("alarm", [](auto& side, auto& each) {
  side("kind", each.kind, kAlarmKinds);
  side("account", each.account);
  side.if_set("description", each.description);
  side("actions_enabled", each.actions_enabled);
  side("actions", each.actions, kActions);
  side.if_set("tags", each.tags);
  side.if_set("listed", each.listed);
  side.if_set("queries", each.queries, kQuery);
  side.if_set("watched_id", each.watched_id);
  side.if_set("threshold_id", each.threshold_id);
  side("comparison", each.comparison, kComparisons);
  side.if_set("threshold", each.threshold);
  side("evaluation_periods", each.evaluation_periods);
  side.if_set("datapoints_to_alarm", each.datapoints_to_alarm);
  side.if_set("missing", each.missing, kMissings);
  side.if_set("low_sample_count", each.low_sample_count);
  side.if_set("rule", each.rule);
});

}  // namespace

Duration AlarmSettings::period() const {
  Duration longest{};
  for (const WatchedQuery& each : queries) {
    if (each.metric) longest = std::max(longest, each.metric->period);
    if (each.period) longest = std::max(longest, *each.period);
  }
  return longest > 0ms ? longest : 60s;
}

Json write(const AlarmSettings& settings) { return kSettings.write(settings); }

Result<AlarmSettings> read_settings(const Json& json) { return kSettings.read(json); }

}  // namespace trainyard::alarms
