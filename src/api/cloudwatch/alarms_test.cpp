#include "shapes/cloudwatch.hpp"

#include "alarms/dashboards.hpp"
#include "alarms/store.hpp"
#include "base/json.hpp"
#include "cloudwatch/alarm_texts.hpp"
#include "cloudwatch/operations.hpp"
#include "operations/testing/operation_caller.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;

struct AlarmWorld : OperationsWorld {
  std::unique_ptr<alarms::AlarmStore> store_of_alarms =
      std::move(*alarms::AlarmStore::open(directory.path() + "/alarms"));
  std::unique_ptr<alarms::Dashboards> dashboards =
      std::move(*alarms::Dashboards::open(directory.path() + "/alarms"));

  AlarmWorld() : OperationsWorld(add_operations) {
    clock.set(*parse_iso8601("2026-11-27T10:00:00Z"));
    services.alarms = store_of_alarms.get();
    services.dashboards = dashboards.get();
  }
  static aws::PutMetricAlarmInput metric_alarm(const std::string& name) {
    return {.alarm_name = name,
            .alarm_actions = {{"arn:aws:sns:eu-west-1:123456789012:topic"}},
            .metric_name = "loss",
            .namespace_ = "n",
            .statistic = "Average",
            .dimensions = {{{.name = "Host", .value = "algo-1"}}},
            .period = 60,
            .evaluation_periods = 2,
            .threshold = 5,
            .comparison_operator = "GreaterThanThreshold"};
  }
  void put(const aws::PutMetricAlarmInput& in) {
    const auto out = call<aws::PutMetricAlarm>(in);
    ASSERT_TRUE(out) << out.failure(aws::kService).message;
  }
  void put_composite(const std::string& name, const std::string& rule) {
    const auto out = call<aws::PutCompositeAlarm>({.alarm_name = name, .alarm_rule = rule});
    ASSERT_TRUE(out) << out.failure(aws::kService).message;
  }
  aws::MetricAlarm only() { return call<aws::DescribeAlarms>({})->metric_alarms->at(0); }
  std::string names(const aws::DescribeAlarmsInput& in) {
    const auto out = call<aws::DescribeAlarms>(in);
    if (!out) return out.failure(aws::kService).code;
    std::string all;
    for (const auto& each : *(*out).metric_alarms) all += *each.alarm_name + " ";
    for (const auto& each : *(*out).composite_alarms) all += "(" + *each.alarm_name + ") ";
    return all;
  }
};

TEST(AlarmOperations, DescribeAnAlarmAsItWasPut) {
  AlarmWorld world;
  auto in = AlarmWorld::metric_alarm("hot");
  in.alarm_description = "too hot";
  in.unit = "Percent";
  in.datapoints_to_alarm = 1;
  in.treat_missing_data = "notBreaching";
  in.tags = {{{.key = "team", .value = "x"}}};
  world.put(in);
  const auto alarm = world.only();
  EXPECT_EQ(alarm.alarm_arn, "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:hot");
  EXPECT_EQ(alarm.alarm_description, "too hot");
  EXPECT_EQ(alarm.state_value, "INSUFFICIENT_DATA");
  EXPECT_EQ(alarm.state_reason, "Unchecked: Initial alarm creation");
  EXPECT_EQ(alarm.statistic, "Average");
  EXPECT_FALSE(alarm.extended_statistic);
  EXPECT_EQ(alarm.period, 60);
  EXPECT_EQ(alarm.unit, "Percent");
  EXPECT_EQ(alarm.threshold, 5);
  EXPECT_EQ(alarm.comparison_operator, "GreaterThanThreshold");
  EXPECT_EQ(alarm.treat_missing_data, "notBreaching");
  EXPECT_EQ(alarm.actions_enabled, true);
  ASSERT_EQ(alarm.dimensions->size(), 1u);
  EXPECT_EQ(alarm.metrics->size(), 0u);

  world.clock.set(world.clock.now() + 1s);
  in.threshold = 6;
  in.tags = {{{.key = "team", .value = "y"}}};
  world.put(in);
  EXPECT_EQ(world.only().threshold, 6);
  EXPECT_EQ(world.only().state_updated_timestamp, alarm.state_updated_timestamp)
      << "new settings keep the state";
  const auto tags = world.call<aws::ListTagsForResource>({.resource_arn = alarm.alarm_arn});
  EXPECT_EQ((*tags).tags->at(0).value, "x") << "as on AWS, only TagResource changes tags";
  auto history = world.call<aws::DescribeAlarmHistory>({.alarm_name = "hot"});
  ASSERT_EQ(history->alarm_history_items->size(), 2u);
  EXPECT_EQ(history->alarm_history_items->at(0).history_summary, "Alarm \"hot\" updated");
  EXPECT_EQ(history->alarm_history_items->at(1).history_item_type, "ConfigurationUpdate");
}

TEST(AlarmOperations, DescribeListsOfMetricsAsTheyWerePut) {
  AlarmWorld world;
  const std::vector<aws::MetricDataQuery> queries{
      {.id = "ratio", .expression = "errors / all", .label = "Ratio", .return_data = true},
      {.id = "errors",
       .metric_stat = aws::MetricStat{.metric = aws::Metric{.namespace_ = "n", .metric_name = "e"},
                                      .period = 60,
                                      .stat = "p90"},
       .return_data = false},
      {.id = "all",
       .metric_stat = aws::MetricStat{.metric = aws::Metric{.namespace_ = "n", .metric_name = "a"},
                                      .period = 60,
                                      .stat = "Sum",
                                      .unit = "Count"},
       .return_data = false}};
  const aws::PutMetricAlarmInput in{.alarm_name = "ratio",
                                    .evaluation_periods = 1,
                                    .threshold = 1,
                                    .comparison_operator = "LessThanThreshold",
                                    .metrics = queries};
  world.put(in);
  const auto alarm = world.only();
  ASSERT_EQ(alarm.metrics->size(), 3u);
  EXPECT_EQ(alarm.metrics->at(0).expression, "errors / all");
  EXPECT_EQ(alarm.metrics->at(1).metric_stat->stat, "p90");
  EXPECT_EQ(alarm.metrics->at(1).return_data, false);
  EXPECT_FALSE(alarm.metric_name || alarm.period || alarm.statistic);
  EXPECT_EQ(world.call<aws::DescribeAlarmsForMetric>({.metric_name = "e", .namespace_ = "n"})
                ->metric_alarms->size(),
            1u);
  const auto refuse = [&](auto edit) {
    auto edited = in;
    edit(edited);
    return world.refusal<aws::PutMetricAlarm>(edited);
  };
  EXPECT_EQ(refuse([](auto& each) { each.metrics->at(1).return_data = true; }),
            "ValidationError: Exactly one element of the metrics list should return data. Please "
            "set ReturnData to false for all others.");
  EXPECT_EQ(refuse([](auto& each) { each.metrics->at(1).metric_stat->period = 300; }),
            "ValidationError: Metrics list must contain metrics of one Period.");
  EXPECT_EQ(refuse([](auto& each) { each.metrics->at(0).expression = "errors / nothing"; }),
            "ValidationError: Error in expression 'ratio': Undefined id 'nothing'");
  EXPECT_EQ(refuse([](auto& each) { each.metrics->at(0).id = "Ratio"; }),
            "ValidationError: The value Ratio for parameter Metrics.member.1.Id is not matching "
            "the expected pattern ^[a-z][a-zA-Z0-9_]*$.");
  EXPECT_TRUE(refuse([](auto& each) { each.metric_name = "x"; }).starts_with("ValidationError"));
}

TEST(AlarmOperations, RejectInvalidAlarmsWithAwssTexts) {
  AlarmWorld world;
  const auto refuse = [&](auto edit) {
    auto in = AlarmWorld::metric_alarm("hot");
    edit(in);
    return world.refusal<aws::PutMetricAlarm>(in);
  };
  EXPECT_EQ(refuse([](auto& in) {
              in.statistic.reset();
              in.extended_statistic = "90";
            }),
            "InvalidParameterValue: The value 90 for parameter ExtendedStatistic is not "
            "supported.");
  EXPECT_EQ(refuse([](auto& in) { in.evaluate_low_sample_count_percentile = "unknown"; }),
            "ValidationError: Option unknown is not supported. Supported options for parameter "
            "EvaluateLowSampleCountPercentile are evaluate and ignore.");
  EXPECT_EQ(refuse([](auto& in) { in.treat_missing_data = "zero"; }),
            "ValidationError: Option zero is not supported. Supported options for parameter "
            "TreatMissingData are breaching, notBreaching, ignore and missing.");
  EXPECT_EQ(refuse([](auto& in) { in.datapoints_to_alarm = 3; }),
            "ValidationError: DatapointsToAlarm must be less than or equal to EvaluationPeriods.");
  EXPECT_EQ(refuse([](auto& in) { in.period = 5; }),
            "ValidationError: Metric period must be 10, 20, 30 or a multiple of 60.");
  EXPECT_EQ(refuse([](auto& in) { in.evaluation_periods = INT32_MAX; }),
            "ValidationError: Metrics cannot be checked across more than seven days "
            "(EvaluationPeriods * Period must be <= 604800).");
  EXPECT_EQ(refuse([](auto& in) { in.alarm_actions = {{"page me"}}; }),
            "ValidationError: Invalid arn syntax: page me");
  const std::string of_job = "arn:aws-x:sagemaker:eu-west-1:123456789012:training-job/j";
  EXPECT_EQ(refuse([&](auto& in) { in.ok_actions = std::vector<std::string>{of_job}; }),
            "ValidationError: Unsupported action: " + of_job +
                ": the ARN of a training job begins with arn:aws:sagemaker:");
  EXPECT_EQ(refuse([](auto& in) { in.threshold.reset(); }).substr(0, 16), "ValidationError:");
  EXPECT_EQ(refuse([](auto& in) { in.threshold_metric_id = "band"; }).substr(0, 16),
            "ValidationError:");
  EXPECT_EQ(world.names({}), "");
}

TEST(AlarmOperations, StoreARepeatedActionOnce) {
  AlarmWorld world;
  auto in = AlarmWorld::metric_alarm("hot");
  const std::string one = "arn:aws:sns:eu-west-1:123456789012:one", two = one + "-more";
  in.alarm_actions = std::vector<std::string>{two, one, two, one, one};
  world.put(in);
  EXPECT_EQ(*world.only().alarm_actions, (std::vector<std::string>{two, one}));
}

TEST(AlarmOperations, RejectCompositesWithUnknownAlarmsOrCycles) {
  AlarmWorld world;
  world.put(AlarmWorld::metric_alarm("hot"));
  const auto refuse = [&](const std::string& name, const std::string& rule) {
    return world.refusal<aws::PutCompositeAlarm>({.alarm_name = name, .alarm_rule = rule});
  };
  EXPECT_EQ(refuse("c", "ALARM(cold)"),
            "ValidationError: Could not save the composite alarm as alarms [cold] in the alarm "
            "rule do not exist");
  EXPECT_EQ(refuse("c", "ALARM(hot"), "ValidationError: Invalid AlarmRule: unexpected 'hot'");
  EXPECT_EQ(refuse("c", "ALARM(c)"),
            "ValidationError: Could not save the composite alarm as its rule would depend on "
            "itself: c -> c");
  EXPECT_EQ(refuse("hot", "TRUE"), "ValidationError: An alarm of another type has the name hot.");
  world.put_composite("c", "ALARM(hot)");
  world.put_composite("d", "ALARM(c)");
  EXPECT_EQ(refuse("c", "ALARM(hot) OR ALARM(d)"),
            "ValidationError: Could not save the composite alarm as its rule would depend on "
            "itself: c -> d -> c");
  EXPECT_EQ(world.names({}), "hot ") << "composites are shown on request";
  EXPECT_EQ(world.names({.alarm_types = {{"CompositeAlarm"}}}), "(c) (d) ");
  EXPECT_EQ(world.names({.alarm_types = {{"CompositeAlarm", "MetricAlarm"}}}), "hot (c) (d) ");
  EXPECT_EQ(world.names({.children_of_alarm_name = "d"}), "(c) ");
  EXPECT_EQ(world.names({.parents_of_alarm_name = "hot"}), "(c) ");
  EXPECT_EQ(world.refusal<aws::DeleteAlarms>({.alarm_names = {{"hot"}}}),
            "ValidationError: Cannot delete hot as there are composite alarm(s) depending on it.");
  EXPECT_TRUE(world.call<aws::DeleteAlarms>({.alarm_names = {{"hot", "c", "d", "absent"}}}));
  EXPECT_EQ(world.names({}), "");
}

TEST(AlarmOperations, FilterAndPageDescriptions) {
  AlarmWorld world;
  for (const char* name : {"a1", "a2", "b1", "b2", "b3"}) world.put(AlarmWorld::metric_alarm(name));
  ASSERT_TRUE(world.call<aws::SetAlarmState>(
      {.alarm_name = "b2", .state_value = "ALARM", .state_reason = "test"}));
  EXPECT_EQ(world.names({.alarm_name_prefix = "b"}), "b1 b2 b3 ");
  EXPECT_EQ(world.names({.alarm_names = {{"b1", "a2", "none"}}}), "a2 b1 ");
  EXPECT_EQ(world.names({.state_value = "ALARM"}), "b2 ");
  EXPECT_EQ(world.names({.action_prefix = "arn:aws:sns:us"}), "");
  EXPECT_EQ(world.names({.action_prefix = "arn:aws:sns:eu"}), "a1 a2 b1 b2 b3 ");
  auto page = world.call<aws::DescribeAlarms>({.max_records = 2});
  EXPECT_EQ((*page).metric_alarms->size(), 2u);
  EXPECT_EQ(world.names({.max_records = 2, .next_token = (*page).next_token}), "b1 b2 ");
  page = world.call<aws::DescribeAlarms>({.max_records = 5});
  EXPECT_FALSE((*page).next_token);
  EXPECT_EQ(world.names({.next_token = "?"}), "InvalidNextToken");
  EXPECT_EQ(world.names({.alarm_names = {{"a1"}}, .alarm_name_prefix = "a"}), "ValidationError");
  world.context.region = "us-east-1";
  EXPECT_EQ(world.names({}), "");
}

TEST(AlarmOperations, StartActionsAndRecordHistoryWhenAStateIsSet) {
  AlarmWorld world;
  world.put(AlarmWorld::metric_alarm("hot"));
  EXPECT_EQ(world.refusal<aws::SetAlarmState>(
                {.alarm_name = "cold", .state_value = "OK", .state_reason = "x"}),
            "ResourceNotFound: Unknown");
  EXPECT_EQ(world
                .refusal<aws::SetAlarmState>({.alarm_name = "hot",
                                              .state_value = "OK",
                                              .state_reason = "x",
                                              .state_reason_data = "{"})
                .substr(0, 14),
            "InvalidFormat:");
  ASSERT_TRUE(world.call<aws::SetAlarmState>({.alarm_name = "hot",
                                              .state_value = "ALARM",
                                              .state_reason = "tested",
                                              .state_reason_data = R"({"a":1})"}));
  const auto due = *world.store_of_alarms->due_actions(world.clock.now(), 10);
  ASSERT_EQ(due.size(), 2u);
  ASSERT_EQ(due[0].target, alarms::kEventBus);
  const Json event = *parse_json(due[0].message);
  EXPECT_EQ(event["resources"][0], "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:hot");
  const Json& detail = event["detail"];
  EXPECT_EQ(detail["alarmName"], "hot");
  EXPECT_EQ(detail["state"]["value"], "ALARM");
  EXPECT_EQ(detail["state"]["reasonData"], R"({"a":1})");
  EXPECT_EQ(detail["state"]["timestamp"], "2026-11-27T10:00:00.000+0000");
  EXPECT_EQ(detail["previousState"]["value"], "INSUFFICIENT_DATA");
  EXPECT_EQ(detail["configuration"]["metrics"][0]["metricStat"]["metric"]["name"], "loss");
  const Json message = *parse_json(due[1].message);
  EXPECT_EQ(message["AlarmName"], "hot");
  EXPECT_EQ(message["NewStateValue"], "ALARM");
  EXPECT_EQ(message["OldStateValue"], "INSUFFICIENT_DATA");
  EXPECT_EQ(message["NewStateReason"], "tested");
  EXPECT_EQ(message["StateChangeTime"], "2026-11-27T10:00:00.000+0000");
  EXPECT_EQ(message["Trigger"]["MetricName"], "loss");
  EXPECT_EQ(message["Trigger"]["Statistic"], "AVERAGE");
  EXPECT_EQ(message["Trigger"]["Dimensions"][0]["name"], "Host");
  const auto items = *world.call<aws::DescribeAlarmHistory>({.history_item_type = "StateUpdate"})
                          ->alarm_history_items;
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].history_summary, "Alarm updated from INSUFFICIENT_DATA to ALARM");
  EXPECT_EQ((*parse_json(*items[0].history_data))["newState"]["stateReasonData"]["a"], 1);

  ASSERT_TRUE(world.call<aws::DisableAlarmActions>({.alarm_names = {{"hot", "absent"}}}));
  EXPECT_EQ(world.only().actions_enabled, false);
  ASSERT_TRUE(world.call<aws::SetAlarmState>(
      {.alarm_name = "hot", .state_value = "OK", .state_reason = "x"}));
  ASSERT_TRUE(world.call<aws::SetAlarmState>(
      {.alarm_name = "hot", .state_value = "ALARM", .state_reason = "x"}));
  EXPECT_EQ(world.store_of_alarms->due_actions(world.clock.now(), 10)->size(), 2u)
      << "events, and the first action";
  ASSERT_TRUE(world.call<aws::EnableAlarmActions>({.alarm_names = {{"hot"}}}));
  EXPECT_EQ(world.only().actions_enabled, true);
}

TEST(AlarmOperations, TagAlarmsAndDashboards) {
  AlarmWorld world;
  world.put(AlarmWorld::metric_alarm("hot: very"));
  ASSERT_TRUE(world.call<aws::PutDashboard>(
      {.dashboard_name = "d", .dashboard_body = R"({"widgets":[]})"}));
  for (const std::string arn : {"arn:aws:cloudwatch:eu-west-1:123456789012:alarm:hot: very",
                                "arn:aws:cloudwatch::123456789012:dashboard/d"}) {
    ASSERT_TRUE(world.call<aws::TagResource>(
        {.resource_arn = arn, .tags = {{{.key = "a", .value = "1"}, {.key = "b", .value = "2"}}}}));
    ASSERT_TRUE(world.call<aws::UntagResource>({.resource_arn = arn, .tag_keys = {{"a", "x"}}}));
    const auto tags = *world.call<aws::ListTagsForResource>({.resource_arn = arn})->tags;
    ASSERT_EQ(tags.size(), 1u) << arn;
    EXPECT_EQ(tags[0].value, "2");
  }
  for (const std::string arn : {"arn:aws:cloudwatch:eu-west-1:123456789012:alarm:cold",
                                "arn:aws:cloudwatch:us-east-1:123456789012:alarm:hot: very",
                                "arn:aws:cloudwatch:eu-west-1:210987654321:alarm:hot: very",
                                "arn:aws:cloudwatch::123456789012:dashboard/none"})
    EXPECT_EQ(world.refusal<aws::TagResource>(
                  {.resource_arn = arn, .tags = {{{.key = "a", .value = "1"}}}}),
              "ResourceNotFoundException: Unknown")
        << arn;
  EXPECT_EQ(world
                .call<aws::ListTagsForResource>(
                    {.resource_arn = "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:cold"})
                ->tags->size(),
            0u);
  std::vector<aws::Tag> many;
  for (int i = 0; i < 51; ++i) many.push_back({.key = std::to_string(i), .value = "x"});
  EXPECT_EQ(world.refusal<aws::TagResource>(
                {.resource_arn = "arn:aws:cloudwatch::123456789012:dashboard/d", .tags = many}),
            "InvalidParameterValue: A resource has at most 50 tags.");
}

TEST(AlarmOperations, AreUnavailableWithoutAnAlarmStore) {
  AlarmWorld world;
  world.services.alarms = nullptr;
  EXPECT_EQ(world.refusal<aws::DescribeAlarms>({}),
            "ServiceUnavailable: alarms are not available on this server");
}

TEST(AlarmTexts, EqualTheReasonsOfAws) {
  alarms::Alarm alarm;
  alarm.settings.queries = {{.id = "m1", .metric = alarms::WatchedMetric{.statistic = "Average"}}};
  alarm.settings.comparison = alarms::Comparison::greater_or_equal;
  alarm.settings.threshold = 1.0;
  const Instant at = *parse_iso8601("2026-11-27T10:00:00Z");
  const CloudwatchTexts texts;
  const auto reason = [&](alarms::Evaluation evaluation) {
    return texts.reason(alarm, evaluation, {at - 3min, at}, at + 5s);
  };
  using Because = alarms::Evaluation::Because;
  const auto to_alarm = reason({alarms::State::alarm, Because::compared, {{at, 99.0, {}}}, 1, 0});
  EXPECT_EQ(to_alarm.text,
            "Threshold Crossed: 1 out of the last 1 datapoints [99.0 (27/11/26 10:00:00)] was "
            "greater than or equal to the threshold (1.0) (minimum 1 datapoint for OK -> ALARM "
            "transition).");
  const Json data = *parse_json(to_alarm.data);
  EXPECT_EQ(data["version"], "1.0");
  EXPECT_EQ(data["queryDate"], "2026-11-27T10:00:05.000+0000");
  EXPECT_EQ(data["recentDatapoints"][0], 99.0);
  EXPECT_EQ(data["threshold"], 1.0);
  EXPECT_EQ(data["evaluatedDatapoints"][0]["timestamp"], "2026-11-27T10:00:00.000+0000");
  alarm.settings.evaluation_periods = 3;
  alarm.settings.datapoints_to_alarm = 2;
  EXPECT_EQ(reason({alarms::State::ok,
                    Because::compared,
                    {{at, 0.5, {}}, {at - 1min, 0.0, {}}, {at - 2min, 7.0, {}}},
                    1,
                    0})
                .text,
            "Threshold Crossed: 2 out of the last 3 datapoints [0.5 (27/11/26 10:00:00), 0.0 "
            "(27/11/26 09:59:00)] were not greater than or equal to the threshold (1.0) (minimum "
            "2 datapoints for ALARM -> OK transition).");
  EXPECT_EQ(reason({alarms::State::insufficient_data, Because::unknown, {}, 0, 0}).text,
            "Insufficient Data: 3 datapoints were unknown.");
  alarm.settings.missing = alarms::Missing::breaching;
  EXPECT_EQ(reason({alarms::State::alarm, Because::none_received, {}, 0, 3}).text,
            "Threshold Crossed: no datapoints were received for 3 periods and 3 missing "
            "datapoints were treated as [Breaching].");
  const alarms::Alarm child{.key = {"eu-west-1", "hot"},
                            .settings = {.account = "123456789012"},
                            .state = {alarms::State::alarm, "", "", at, at}};
  const auto composite = texts.composite_reason(alarm, alarms::State::alarm, &child, at);
  EXPECT_EQ(composite.text,
            "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:hot transitioned to ALARM at Friday "
            "27 November, 2026 10:00:00 UTC");
  EXPECT_EQ((*parse_json(composite.data))["triggeringAlarms"][0]["state"]["value"], "ALARM");
}

}  // namespace
}  // namespace trainyard::api::cloudwatch
