#include "cloudwatch/alarm_texts.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "base/enum_table.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "cloudwatch/common.hpp"
#include "metric_math/statistic.hpp"
#include "protocol/values.hpp"

namespace trainyard::api::cloudwatch {
namespace {

using alarms::Alarm;
using alarms::AlarmState;
using alarms::Comparison;
using alarms::Evaluation;
using alarms::Missing;
using alarms::State;

// "27/11/26 10:00:00", as CloudWatch writes the time of a datapoint.
std::string datapoint_time(Instant at) {
  const std::string text = to_iso8601(at, false);  // 2026-11-27T10:00:00Z
  return text.substr(8, 2) + "/" + text.substr(5, 2) + "/" + text.substr(2, 2) + " " +
         text.substr(11, 8);
}

// "1.0", "0.25": a number always has a point.
std::string number_text(double value) {
  std::string text = double_text(value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

// As alarms describe comparisons; kComparisons has the texts of the API.
constexpr EnumTable<Comparison> kComparisonPhrases{
    "comparison",
    {{Comparison::greater_or_equal, "greater than or equal to"},
     {Comparison::greater, "greater than"},
     {Comparison::less, "less than"},
     {Comparison::less_or_equal, "less than or equal to"},
     {Comparison::outside_band,
      "less than the lower thresholds or greater than the upper thresholds"},
     {Comparison::below_band, "less than the lower thresholds"},
     {Comparison::above_band, "greater than the upper thresholds"}}};

std::string counted(int64_t count, std::string_view word) {
  return std::to_string(count) + " " + std::string(word) + (count == 1 ? "" : "s");
}

// "Threshold Crossed: 1 out of the last 1 datapoints [9.0 (27/11/26 10:00:00)] was greater than the
// threshold (5.0) (minimum 1 datapoint for OK -> ALARM transition)."
std::string crossed_text(const Alarm& alarm, const Evaluation& evaluation) {
  const auto& settings = alarm.settings;
  const bool to_alarm = evaluation.state == State::alarm;
  const int64_t needed = settings.datapoints_to_alarm.value_or(settings.evaluation_periods);
  std::string values;
  int64_t shown = 0;
  for (const auto& each : evaluation.compared) {
    if (alarms::breaches(settings, each) != to_alarm) continue;
    ++shown;
    values += (values.empty() ? "" : ", ") + number_text(*each.value) + " (" +
              datapoint_time(each.at) + ")";
  }
  const int64_t minimum = to_alarm ? needed : settings.evaluation_periods - needed + 1;
  return "Threshold Crossed: " + std::to_string(shown) + " out of the last " +
         std::to_string(evaluation.compared.size()) + " datapoints [" + values + "] " +
         (shown == 1 ? "was " : "were ") + (to_alarm ? "" : "not ") +
         std::string(kComparisonPhrases.text(settings.comparison)) + " the threshold (" +
         number_text(settings.threshold.value_or(0)) + ") (minimum " +
         counted(minimum, "datapoint") + " for " + (to_alarm ? "OK -> ALARM" : "ALARM -> OK") +
         " transition).";
}

std::string reason_text(const Alarm& alarm, const Evaluation& evaluation) {
  const auto& settings = alarm.settings;
  if (evaluation.because == Evaluation::Because::unknown)
    return "Insufficient Data: " + counted(settings.evaluation_periods, "datapoint") +
           (settings.evaluation_periods == 1 ? " was" : " were") + " unknown.";
  if (evaluation.because == Evaluation::Because::none_received)
    return "Threshold Crossed: no datapoints were received for " +
           counted(settings.evaluation_periods, "period") + " and " +
           counted(evaluation.filled, "missing datapoint") +
           (evaluation.filled == 1 ? " was" : " were") + " treated as [" +
           (settings.missing == Missing::breaching ? "Breaching" : "NonBreaching") + "].";
  return crossed_text(alarm, evaluation);
}

const alarms::WatchedMetric* only_metric(const Alarm& alarm) {
  const auto& settings = alarm.settings;
  if (settings.listed || settings.queries.empty() || !settings.queries[0].metric) return nullptr;
  return &*settings.queries[0].metric;
}

bool has_percentile(const alarms::WatchedMetric& metric) {
  const auto statistic = metric_math::parse_statistic(metric.statistic);
  return statistic && metric_math::needs_samples(*statistic);
}

Json reason_data(const Alarm& alarm, const Evaluation& evaluation, const alarms::Range& range,
                 Instant now) {
  Json data{{"version", "1.0"}, {"queryDate", offset_time_text(now)}};
  if (!evaluation.compared.empty())
    data["startDate"] = offset_time_text(evaluation.compared.back().at);
  else
    data["startDate"] = offset_time_text(range.from);
  if (const auto* metric = only_metric(alarm)) {
    data["statistic"] = metric->statistic;
    if (!metric->unit.empty()) data["unit"] = metric->unit;
  }
  data["period"] = alarm.settings.period() / 1s;
  data["recentDatapoints"] = Json::array();
  data["evaluatedDatapoints"] = Json::array();
  for (auto each = evaluation.compared.rbegin(); each != evaluation.compared.rend(); ++each)
    data["recentDatapoints"].push_back(*each->value);
  for (const auto& each : evaluation.compared)
    data["evaluatedDatapoints"].push_back(
        {{"timestamp", offset_time_text(each.at)}, {"value", *each.value}});
  if (alarm.settings.threshold) data["threshold"] = *alarm.settings.threshold;
  return data;
}

// "AVERAGE", as notifications have it.
std::string upper_statistic(const std::string& statistic) {
  return statistic == "SampleCount" ? "SAMPLE_COUNT" : to_upper(statistic);
}

Json dimensions_json(const alarms::WatchedMetric& metric) {
  Json all = Json::array();
  for (const auto& [name, value] : metric.dimensions)
    all.push_back({{"value", value}, {"name", name}});
  return all;
}

Json metric_json(const alarms::WatchedMetric& metric) {
  return {{"MetricName", metric.name},
          {"Namespace", metric.name_space},
          {"Dimensions", dimensions_json(metric)}};
}

Json trigger_json(const Alarm& alarm) {
  const auto& settings = alarm.settings;
  Json trigger;
  if (const auto* metric = only_metric(alarm)) {
    trigger = metric_json(*metric);
    const bool percentile = has_percentile(*metric);
    trigger["StatisticType"] = percentile ? "ExtendedStatistic" : "Statistic";
    if (percentile)
      trigger["ExtendedStatistic"] = metric->statistic;
    else
      trigger["Statistic"] = upper_statistic(metric->statistic);
    trigger["Unit"] = metric->unit.empty() ? Json() : Json(metric->unit);
  } else {
    trigger["Metrics"] = Json::array();
    for (const auto& each : settings.queries) {
      Json query{{"Id", each.id}, {"ReturnData", each.returns_data.value_or(true)}};
      if (!each.label.empty()) query["Label"] = each.label;
      if (!each.expression.empty()) query["Expression"] = each.expression;
      if (each.metric)
        query["MetricStat"] = {{"Metric", metric_json(*each.metric)},
                               {"Period", each.metric->period / 1s},
                               {"Stat", each.metric->statistic}};
      trigger["Metrics"].push_back(std::move(query));
    }
  }
  trigger["Period"] = settings.period() / 1s;
  trigger["EvaluationPeriods"] = settings.evaluation_periods;
  if (settings.datapoints_to_alarm) trigger["DatapointsToAlarm"] = *settings.datapoints_to_alarm;
  trigger["ComparisonOperator"] = to_text(settings.comparison);
  if (settings.threshold) trigger["Threshold"] = *settings.threshold;
  trigger["TreatMissingData"] = to_text(settings.missing.value_or(Missing::missing));
  trigger["EvaluateLowSampleCountPercentile"] = settings.low_sample_count.value_or("");
  return trigger;
}

Json event_state_json(const AlarmState& state) {
  Json out{{"value", to_text(state.value)},
           {"reason", state.reason},
           {"timestamp", offset_time_text(state.updated)}};
  if (!state.reason_data.empty()) out["reasonData"] = state.reason_data;
  return out;
}

Json event_metrics_json(const alarms::AlarmSettings& settings) {
  Json all = Json::array();
  for (const auto& each : settings.queries) {
    Json query{{"id", each.id}, {"returnData", each.returns_data.value_or(true)}};
    if (!each.label.empty()) query["label"] = each.label;
    if (!each.expression.empty()) query["expression"] = each.expression;
    if (each.metric) {
      Json dimensions = Json::object();
      for (const auto& [name, value] : each.metric->dimensions) dimensions[name] = value;
      query["metricStat"] = {{"metric",
                              {{"namespace", each.metric->name_space},
                               {"name", each.metric->name},
                               {"dimensions", std::move(dimensions)}}},
                             {"period", each.metric->period / 1s},
                             {"stat", each.metric->statistic}};
      if (!each.metric->unit.empty()) query["metricStat"]["unit"] = each.metric->unit;
    }
    all.push_back(std::move(query));
  }
  return all;
}

Json state_json(const AlarmState& state) {
  Json out{{"stateValue", to_text(state.value)}, {"stateReason", state.reason}};
  if (!state.reason_data.empty())
    if (auto data = parse_json(state.reason_data)) out["stateReasonData"] = std::move(*data);
  return out;
}

// "Friday 27 November, 2026 10:00:00 UTC"
std::string spoken_time(Instant at) {
  static constexpr std::array<const char*, 7> kDays{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                    "Thursday", "Friday", "Saturday"};
  static constexpr std::array<const char*, 12> kMonths{
      "January", "February", "March",     "April",   "May",      "June",
      "July",    "August",   "September", "October", "November", "December"};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  char number[8];
  std::snprintf(number, sizeof number, "%02u", unsigned(date.day()));
  return std::string(kDays[std::chrono::weekday(day).c_encoding()]) + " " + number + " " +
         kMonths[unsigned(date.month()) - 1] + ", " + std::to_string(int(date.year())) + " " +
         to_iso8601(at, false).substr(11, 8) + " UTC";
}

}  // namespace

alarms::Texts CloudwatchTexts::reason(const Alarm& alarm, const Evaluation& evaluation,
                                      const alarms::Range& range, Instant now) const {
  return {reason_text(alarm, evaluation), dump(reason_data(alarm, evaluation, range, now))};
}

alarms::Texts CloudwatchTexts::composite_reason(const Alarm& alarm, State next,
                                                const Alarm* changed, Instant now) const {
  if (!changed)
    return {alarm_arn(alarm.settings.account, alarm.key) + " was evaluated to " +
                std::string(to_text(next)) + " at " + spoken_time(now),
            dump(Json{{"triggeringAlarms", Json::array()}})};
  const std::string arn = alarm_arn(changed->settings.account, changed->key);
  const std::string value(to_text(changed->state.value));
  Json trigger{
      {"arn", arn},
      {"state", {{"value", value}, {"timestamp", offset_time_text(changed->state.transitioned)}}}};
  Json all = Json::array();
  all.push_back(std::move(trigger));
  return {arn + " transitioned to " + value + " at " + spoken_time(changed->state.transitioned),
          dump(Json{{"triggeringAlarms", std::move(all)}})};
}

std::string CloudwatchTexts::message(const Alarm& after, const AlarmState& before,
                                     const std::string&) const {
  const auto& settings = after.settings;
  Json message{{"AlarmName", after.key.name},
               {"AlarmDescription", settings.description ? Json(*settings.description) : Json()},
               {"AWSAccountId", settings.account},
               {"AlarmConfigurationUpdatedTimestamp", offset_time_text(after.configured)},
               {"NewStateValue", to_text(after.state.value)},
               {"NewStateReason", after.state.reason},
               {"StateChangeTime", offset_time_text(after.state.updated)},
               {"Region", after.key.region},
               {"AlarmArn", alarm_arn(settings.account, after.key)},
               {"OldStateValue", to_text(before.value)},
               {"OKActions", settings.actions.ok},
               {"AlarmActions", settings.actions.alarm},
               {"InsufficientDataActions", settings.actions.insufficient_data}};
  if (settings.kind == alarms::AlarmKind::composite)
    message["AlarmRule"] = settings.rule;
  else
    message["Trigger"] = trigger_json(after);
  return dump(message);
}

std::string CloudwatchTexts::event(const Alarm& after, const AlarmState& before) const {
  const auto& settings = after.settings;
  Json configuration = Json::object();
  if (settings.description) configuration["description"] = *settings.description;
  if (settings.kind == alarms::AlarmKind::composite)
    configuration["alarmRule"] = settings.rule;
  else
    configuration["metrics"] = event_metrics_json(settings);
  Json resources = Json::array();
  resources.push_back(alarm_arn(settings.account, after.key));
  return dump(Json{{"resources", std::move(resources)},
                   {"detail",
                    {{"alarmName", after.key.name},
                     {"configuration", std::move(configuration)},
                     {"previousState", event_state_json(before)},
                     {"state", event_state_json(after.state)}}}});
}

alarms::Texts CloudwatchTexts::state_item(const Alarm& after, const AlarmState& before) const {
  return {"Alarm updated from " + std::string(to_text(before.value)) + " to " +
              std::string(to_text(after.state.value)),
          dump(Json{{"version", "1.0"},
                    {"oldState", state_json(before)},
                    {"newState", state_json(after.state)}})};
}

alarms::Texts CloudwatchTexts::action_item(const alarms::PendingAction& action,
                                           const std::string& error) const {
  Json data{{"actionState", error.empty() ? "Succeeded" : "Failed"},
            {"notificationResource", action.target},
            {"publishedMessage", action.message}};
  if (!error.empty()) data["error"] = error;
  return {(error.empty() ? "Successfully executed action " : "Failed to execute action ") +
              action.target + (error.empty() ? "" : ". Received error: \"" + error + "\""),
          dump(data)};
}

}  // namespace trainyard::api::cloudwatch
