#include "cloudwatch/alarm_shapes.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "alarms/rule.hpp"
#include "base/text.hpp"
#include "cloudwatch/common.hpp"
#include "cloudwatch/queries.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;
using alarms::AlarmSettings;
using alarms::Comparison;

constexpr int64_t kAlarmSecondsMax = 7 * 86400;  // evaluation periods times period, as on AWS
constexpr size_t kActionsMax = 5;                // of one state, as on AWS
// The id of the query of an alarm with one metric, whose request has no list of queries.
constexpr const char* kOnlyId = "m1";

bool is_alarm_period(int64_t seconds) { return seconds >= 10 && is_period(seconds); }

// Reads the actions of an alarm. Only the form of the ARNs is checked; an unknown target is an
// error when the action runs.
template <class Input>
std::optional<Failure> add_actions(const Input& in, AlarmSettings& settings) {
  const auto add = [](const std::optional<std::vector<std::string>>& given,
                      std::vector<std::string>& to) -> std::optional<Failure> {
    if (!given) return {};
    if (given->size() > kActionsMax)
      return validation_error("An alarm has at most " + std::to_string(kActionsMax) +
                              " actions for each state.");
    to.clear();
    for (const std::string& each : *given) {
      if (!each.starts_with("arn:"))
        return validation_error("Invalid arn syntax: " + shorten(each, 200));
      // Only this form of the ARN is the one for which StopTrainingJob is authorized.
      if (each.find(":sagemaker:") != std::string::npos && !each.starts_with("arn:aws:sagemaker:"))
        return validation_error("Unsupported action: " + shorten(each, 200) +
                                ": the ARN of a training job begins with arn:aws:sagemaker:");
      if (std::ranges::find(to, each) == to.end()) to.push_back(each);
    }
    return {};
  };
  if (auto failure = add(in.ok_actions, settings.actions.ok)) return failure;
  if (auto failure = add(in.alarm_actions, settings.actions.alarm)) return failure;
  return add(in.insufficient_data_actions, settings.actions.insufficient_data);
}

template <class Input>
std::optional<Failure> add_common(const Context& context, const Input& in,
                                  AlarmSettings& settings) {
  settings.account = context.principal.account;
  settings.description = in.alarm_description;
  settings.actions_enabled = in.actions_enabled.value_or(true);
  if (in.tags)
    for (const aws::Tag& each : *in.tags) settings.tags[*each.key] = *each.value;
  if (in.action_configuration)
    return validation_error(
        "ActionConfiguration is not supported: tags are not sent with actions.");
  return add_actions(in, settings);
}

alarms::WatchedMetric watched_metric(const std::string& name_space, const std::string& name,
                                     const std::optional<std::vector<aws::Dimension>>& dimensions,
                                     std::string statistic, int64_t period,
                                     const std::optional<std::string>& unit) {
  alarms::WatchedMetric out{.name_space = name_space,
                            .name = name,
                            .statistic = std::move(statistic),
                            .period = Duration(period * 1000),
                            .unit = unit.value_or("")};
  if (dimensions)
    for (const aws::Dimension& each : *dimensions)
      out.dimensions.emplace_back(*each.name, *each.value);
  return out;
}

std::optional<Failure> check_single(const aws::PutMetricAlarmInput& in) {
  if (!in.metric_name || !in.namespace_ || !in.period)
    return validation_error(
        "Exactly one of Metrics and MetricName must be specified; MetricName needs Namespace and "
        "Period.");
  if (in.statistic.has_value() == in.extended_statistic.has_value())
    return validation_error("Exactly one of Statistic and ExtendedStatistic must be specified.");
  if (in.extended_statistic) {
    const auto statistic = metric_math::parse_statistic(*in.extended_statistic);
    if (!statistic || !metric_math::needs_samples(*statistic))
      return invalid_parameter_value("The value " + shorten(*in.extended_statistic, 100) +
                                     " for parameter ExtendedStatistic is not supported.");
  }
  if (!is_alarm_period(*in.period))
    return validation_error("Metric period must be 10, 20, 30 or a multiple of 60.");
  return {};
}

// Reads an alarm with one metric.
std::optional<Failure> add_single(const aws::PutMetricAlarmInput& in, AlarmSettings& settings) {
  if (auto failure = check_single(in)) return failure;
  settings.queries = {
      {.id = kOnlyId,
       .metric = watched_metric(*in.namespace_, *in.metric_name, in.dimensions,
                                in.statistic ? *in.statistic : *in.extended_statistic, *in.period,
                                in.unit)}};
  settings.watched_id = kOnlyId;
  return {};
}

alarms::WatchedQuery watched_query(const aws::MetricDataQuery& query) {
  alarms::WatchedQuery out{.id = *query.id,
                           .expression = query.expression.value_or(""),
                           .label = query.label.value_or(""),
                           .returns_data = query.return_data,
                           .account = query.account_id.value_or("")};
  if (query.period) out.period = Duration(*query.period * 1000);
  if (const auto& stat = query.metric_stat)
    out.metric = watched_metric(*stat->metric->namespace_, *stat->metric->metric_name,
                                stat->metric->dimensions, *stat->stat, *stat->period, stat->unit);
  return out;
}

std::optional<Failure> check_listed(const aws::PutMetricAlarmInput& in,
                                    const AlarmSettings& settings) {
  if (in.metric_name || in.namespace_ || in.statistic || in.extended_statistic || in.dimensions ||
      in.period || in.unit)
    return validation_error(
        "The parameters MetricName, Namespace, Statistic, ExtendedStatistic, Dimensions, Period "
        "and Unit must not be specified together with Metrics.");
  std::set<Duration> periods;
  for (const auto& each : settings.queries) {
    if (each.metric) periods.insert(each.metric->period);
    if (each.period) periods.insert(*each.period);
  }
  if (periods.size() > 1)
    return validation_error("Metrics list must contain metrics of one Period.");
  if (!periods.empty() && !is_alarm_period(*periods.begin() / 1s))
    return validation_error("Metric period must be 10, 20, 30 or a multiple of 60.");
  return {};
}

// Reads an alarm with a list of metrics and expressions, of which one is compared with the
// threshold.
std::optional<Failure> add_listed(const Context& context, const aws::PutMetricAlarmInput& in,
                                  AlarmSettings& settings) {
  const auto queries = to_queries(context, *in.metrics, "Metrics");
  if (!queries) return queries.failure(aws::kService);
  settings.listed = true;
  for (const auto& each : *in.metrics) settings.queries.push_back(watched_query(each));
  if (auto failure = check_listed(in, settings)) return failure;
  settings.threshold_id = in.threshold_metric_id.value_or("");
  std::vector<std::string> returned;
  for (const auto& each : settings.queries)
    if (each.returns_data.value_or(true) && each.id != settings.threshold_id)
      returned.push_back(each.id);
  if (returned.size() != 1)
    return validation_error(
        "Exactly one element of the metrics list should return data. Please set ReturnData to "
        "false for all others.");
  settings.watched_id = returned[0];
  return {};
}

bool compares_with_band(Comparison comparison) { return comparison >= Comparison::outside_band; }

std::optional<Failure> check_threshold(const aws::PutMetricAlarmInput& in,
                                       const AlarmSettings& settings) {
  if (in.threshold_metric_id || compares_with_band(settings.comparison))
    return validation_error(
        "Alarms by anomaly detection bands are not supported: ThresholdMetricId, and comparisons "
        "with a lower and an upper threshold.");
  if (!in.threshold)
    return validation_error("The parameter Threshold is required unless it is an anomaly band.");
  if (!std::isfinite(*in.threshold))
    return invalid_parameter_value("The value for parameter Threshold is invalid.");
  return {};
}

std::optional<Failure> check_periods(const aws::PutMetricAlarmInput& in,
                                     const AlarmSettings& settings) {
  if (in.datapoints_to_alarm && *in.datapoints_to_alarm > *in.evaluation_periods)
    return validation_error("DatapointsToAlarm must be less than or equal to EvaluationPeriods.");
  // Avoids a product, which could overflow.
  if (*in.evaluation_periods > kAlarmSecondsMax / (settings.period() / 1s))
    return validation_error(
        "Metrics cannot be checked across more than seven days (EvaluationPeriods * Period must be "
        "<= 604800).");
  return {};
}

std::optional<Failure> check_unsupported(const aws::PutMetricAlarmInput& in) {
  if (in.evaluation_window || in.warm_up_configuration || in.evaluation_criteria ||
      in.evaluation_interval)
    return validation_error(
        "EvaluationWindow, WarmUpConfiguration, EvaluationCriteria and EvaluationInterval are not "
        "supported.");
  return {};
}

template <class Shape>
void put_common(const alarms::Alarm& alarm, Shape& out) {
  const AlarmSettings& settings = alarm.settings;
  out.alarm_name = alarm.key.name;
  out.alarm_arn = alarm_arn(settings.account, alarm.key);
  out.alarm_description = settings.description;
  out.alarm_configuration_updated_timestamp = alarm.configured;
  out.actions_enabled = settings.actions_enabled;
  out.ok_actions = settings.actions.ok;
  out.alarm_actions = settings.actions.alarm;
  out.insufficient_data_actions = settings.actions.insufficient_data;
  out.state_value = std::string(to_text(alarm.state.value));
  out.state_reason = alarm.state.reason;
  if (!alarm.state.reason_data.empty()) out.state_reason_data = alarm.state.reason_data;
  out.state_updated_timestamp = alarm.state.updated;
  out.state_transitioned_timestamp = alarm.state.transitioned;
}

std::vector<aws::Dimension> dimensions_of(const alarms::WatchedMetric& metric) {
  std::vector<aws::Dimension> out;
  for (const auto& [name, value] : metric.dimensions) out.push_back({.name = name, .value = value});
  return out;
}

std::optional<std::string> if_set(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

aws::MetricDataQuery to_query(const alarms::WatchedQuery& query) {
  aws::MetricDataQuery out{.id = query.id,
                           .expression = if_set(query.expression),
                           .label = if_set(query.label),
                           .return_data = query.returns_data,
                           .account_id = if_set(query.account)};
  if (query.period) out.period = *query.period / 1s;
  if (!query.metric) return out;
  aws::Metric metric{.namespace_ = query.metric->name_space, .metric_name = query.metric->name};
  metric.dimensions = dimensions_of(*query.metric);
  out.metric_stat = aws::MetricStat{.metric = std::move(metric),
                                    .period = query.metric->period / 1s,
                                    .stat = query.metric->statistic,
                                    .unit = if_set(query.metric->unit)};
  return out;
}

void put_single(const alarms::WatchedMetric& metric, aws::MetricAlarm& out) {
  out.metric_name = metric.name;
  out.namespace_ = metric.name_space;
  out.dimensions = dimensions_of(metric);
  out.period = metric.period / 1s;
  out.unit = if_set(metric.unit);
  const auto statistic = metric_math::parse_statistic(metric.statistic);
  if (statistic && metric_math::needs_samples(*statistic))
    out.extended_statistic = metric.statistic;
  else
    out.statistic = metric.statistic;
}

}  // namespace

Outcome<AlarmSettings> to_settings(const Context& context, const aws::PutMetricAlarmInput& in) {
  AlarmSettings settings;
  if (auto failure = check_unsupported(in)) return *failure;
  if (auto failure = add_common(context, in, settings)) return *failure;
  if (in.comparison_operator) settings.comparison = TRY(parse_comparison(*in.comparison_operator));
  if (auto failure = check_threshold(in, settings)) return *failure;
  if (auto failure = in.metrics && !in.metrics->empty() ? add_listed(context, in, settings)
                                                        : add_single(in, settings))
    return *failure;
  settings.threshold = in.threshold;
  if (!in.evaluation_periods)
    return validation_error("The parameter EvaluationPeriods is required.");
  settings.evaluation_periods = *in.evaluation_periods;
  settings.datapoints_to_alarm = in.datapoints_to_alarm;
  if (auto failure = check_periods(in, settings)) return *failure;
  if (in.treat_missing_data) {
    const auto missing = parse_missing(*in.treat_missing_data);
    if (!missing)
      return validation_error("Option " + shorten(*in.treat_missing_data, 100) +
                              " is not supported. Supported options for parameter "
                              "TreatMissingData are breaching, notBreaching, ignore and missing.");
    settings.missing = *missing;
  }
  settings.low_sample_count = in.evaluate_low_sample_count_percentile;
  if (const auto& option = settings.low_sample_count;
      option && *option != "evaluate" && *option != "ignore")
    return validation_error("Option " + shorten(*option, 100) +
                            " is not supported. Supported options for parameter "
                            "EvaluateLowSampleCountPercentile are evaluate and ignore.");
  return settings;
}

Outcome<AlarmSettings> to_settings(const Context& context, const aws::PutCompositeAlarmInput& in) {
  AlarmSettings settings{.kind = alarms::AlarmKind::composite};
  if (in.actions_suppressor || in.actions_suppressor_wait_period ||
      in.actions_suppressor_extension_period)
    return validation_error("ActionsSuppressor is not supported.");
  if (auto failure = add_common(context, in, settings)) return *failure;
  if (const auto rule = alarms::Rule::parse(*in.alarm_rule); !rule)
    return validation_error("Invalid AlarmRule: " + rule.error().message);
  settings.rule = *in.alarm_rule;
  return settings;
}

aws::MetricAlarm to_metric_alarm(const alarms::Alarm& alarm) {
  const AlarmSettings& settings = alarm.settings;
  aws::MetricAlarm out;
  put_common(alarm, out);
  out.metrics.emplace();
  if (settings.listed)
    for (const auto& each : settings.queries) out.metrics->push_back(to_query(each));
  else if (!settings.queries.empty() && settings.queries[0].metric)
    put_single(*settings.queries[0].metric, out);
  out.evaluation_periods = settings.evaluation_periods;
  out.datapoints_to_alarm = settings.datapoints_to_alarm;
  out.threshold = settings.threshold;
  out.threshold_metric_id = if_set(settings.threshold_id);
  out.comparison_operator = std::string(to_text(settings.comparison));
  if (settings.missing) out.treat_missing_data = std::string(to_text(*settings.missing));
  out.evaluate_low_sample_count_percentile = settings.low_sample_count;
  return out;
}

aws::CompositeAlarm to_composite_alarm(const alarms::Alarm& alarm) {
  aws::CompositeAlarm out;
  put_common(alarm, out);
  out.alarm_rule = alarm.settings.rule;
  return out;
}

}  // namespace trainyard::api::cloudwatch
