#include "shapes/cloudwatch.hpp"

#include <cmath>

#include "cloudwatch/operations.hpp"
#include "operations/testing/operation_caller.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;
using Datum = aws::MetricDatum;

struct World : OperationsWorld {
  World() : OperationsWorld(add_operations) { clock.set(*parse_iso8601("2026-11-20T12:00:00Z")); }
  std::string refuse(Datum datum) {
    datum.metric_name = "loss";
    return refusal<aws::PutMetricData>({.namespace_ = "n", .metric_data = {{datum}}});
  }
  void put(Datum datum) {
    if (!datum.metric_name) datum.metric_name = "loss";
    const auto out = call<aws::PutMetricData>({.namespace_ = "n", .metric_data = {{datum}}});
    ASSERT_TRUE(out) << out.failure(aws::kService).message;
  }
  aws::GetMetricStatisticsInput request(Duration begin, Duration end, int64_t period) {
    return {.namespace_ = "n",
            .metric_name = "loss",
            .start_time = clock.now() + begin,
            .end_time = clock.now() + end,
            .period = period,
            .statistics = {{"SampleCount", "Average", "Sum", "Minimum", "Maximum"}}};
  }
};

TEST(CloudwatchOperations, SumValuesCountsAndSets) {
  World world;
  world.put({.timestamp = world.clock.now(), .value = 1});
  world.put({.timestamp = world.clock.now() + 1s, .values = {{2, 3}}, .counts = {{10, 1}}});
  world.put({.timestamp = world.clock.now() + 2s, .values = {{5}}});
  world.put({.timestamp = world.clock.now() + 3s,
             .statistic_values =
                 aws::StatisticSet{.sample_count = 2, .sum = 10, .minimum = 0, .maximum = 10}});
  const auto out = world.call<aws::GetMetricStatistics>(world.request(0s, 60s, 60));
  ASSERT_TRUE(out);
  EXPECT_EQ((*out).label, "loss");
  ASSERT_EQ((*out).datapoints->size(), 1u);
  const auto& point = (*out).datapoints->at(0);
  EXPECT_EQ(point.timestamp, world.clock.now());
  EXPECT_EQ(point.sample_count, 15);
  EXPECT_EQ(point.sum, 1 + 20 + 3 + 5 + 10);
  EXPECT_EQ(point.minimum, 0);
  EXPECT_EQ(point.maximum, 10);
  EXPECT_EQ(point.average, 39.0 / 15);
  EXPECT_EQ(point.unit, "None");
}

TEST(CloudwatchOperations, ReturnOnlyRequestedStatistics) {
  World world;
  world.put({.value = 1, .unit = "Seconds"});
  world.put({.value = 1, .unit = "Count"});
  auto in = world.request(0s, 60s, 60);
  in.statistics = {{"Sum"}};
  in.unit = "Count";
  const auto out = world.call<aws::GetMetricStatistics>(in);
  ASSERT_EQ((*out).datapoints->size(), 1u);
  EXPECT_EQ((*out).datapoints->at(0).unit, "Count");
  EXPECT_FALSE((*out).datapoints->at(0).average);
  in.dimensions = {{{.name = "a", .value = "b"}}};
  EXPECT_TRUE(world.call<aws::GetMetricStatistics>(in)->datapoints->empty());
}

TEST(CloudwatchOperations, RoundStartTimesDownByAge) {
  World world;
  world.put({.timestamp = world.clock.now(), .value = 1});
  auto in = world.request(30s, 90s, 60);
  auto out = world.call<aws::GetMetricStatistics>(in);
  ASSERT_EQ((*out).datapoints->size(), 1u) << "12:00:30 is rounded down to 12:00:00";
  EXPECT_EQ((*out).datapoints->at(0).timestamp, world.clock.now());
  in = world.request(7s, 60s, 5);
  EXPECT_TRUE(world.call<aws::GetMetricStatistics>(in)->datapoints->empty())
      << "12:00:07 becomes 12:00:05";
}

TEST(CloudwatchOperations, RejectInvalidQueries) {
  World world;
  const auto refuse = [&](const aws::GetMetricStatisticsInput& in) {
    return world.refusal<aws::GetMetricStatistics>(in);
  };
  EXPECT_EQ(refuse(world.request(-24h, 1min, 60)),
            "InvalidParameterCombination: You have requested up to 1,441 datapoints, which exceeds "
            "the limit of 1,440. You may reduce the datapoints "
            "requested by increasing Period, or decreasing the time range.");
  EXPECT_TRUE(world.call<aws::GetMetricStatistics>(world.request(-24h, 0s, 60)));
  EXPECT_EQ(
      refuse(world.request(0s, 0s, 60)),
      "InvalidParameterValue: The parameter StartTime must be less than the parameter EndTime.");
  EXPECT_EQ(
      refuse(world.request(0s, 60s, 61)),
      "InvalidParameterValue: The parameter Period must be 1, 5, 10, 20, 30 or a multiple of 60.");
  auto in = world.request(0s, 60s, 60);
  in.statistics.reset();
  EXPECT_EQ(refuse(in),
            "InvalidParameterCombination: Must specify either Statistics or ExtendedStatistics");
  for (const char* text : {"99", "Average", "p101"}) {
    in.extended_statistics = {{text}};
    EXPECT_EQ(refuse(in), "InvalidParameterValue: The value " + std::string(text) +
                              " for parameter ExtendedStatistics is not supported.");
  }
}

TEST(CloudwatchOperations, RejectInvalidData) {
  World world;
  const std::string name = "MetricData.member.1";
  EXPECT_EQ(world.refuse({}), "MissingParameter: At least one of the parameters " + name +
                                  ".Value, " + name + ".Values, " + name +
                                  ".StatisticValues must be specified.");
  EXPECT_EQ(world.refuse({.value = 1, .values = {{1}}}),
            "InvalidParameterValue: The parameters " + name + ".Value and " + name +
                ".Values are mutually exclusive and you have specified both.");
  EXPECT_EQ(world.refuse({.value = NAN}),
            "InvalidParameterValue: The value NaN for parameter " + name + ".Value is invalid.");
  EXPECT_TRUE(world.refuse({.value = 1e300})
                  .starts_with("InvalidParameterValue: The value 1e+300 for parameter " + name +
                               ".Value is invalid"));
  EXPECT_EQ(world.refuse({.values = {{1, 2}}, .counts = {{1}}}),
            "InvalidParameterValue: The parameters " + name + ".Values and " + name +
                ".Counts must be of the same size.");
  EXPECT_EQ(
      world.refuse({.values = {{1}}, .counts = {{0}}}),
      "InvalidParameterValue: The parameter " + name + ".Counts.member.1 must be greater than 0.");
  EXPECT_EQ(world.refuse({.values = std::vector<double>(151, 1)}),
            "InvalidParameterValue: The collection " + name +
                ".Values must not have a size greater than 150.");
  EXPECT_EQ(world.refuse({.timestamp = world.clock.now() - 14 * 24h - 1s, .value = 1}),
            "InvalidParameterValue: The parameter " + name +
                ".Timestamp must specify a time within the past two weeks.");
  EXPECT_EQ(world.refuse({.timestamp = world.clock.now() + 2h + 1s, .value = 1}),
            "InvalidParameterValue: The parameter " + name +
                ".Timestamp must specify a time no more than two hours in the future.");
  EXPECT_TRUE(
      world
          .refuse({.statistic_values =
                       aws::StatisticSet{.sample_count = 0, .sum = 1, .minimum = 1, .maximum = 1}})
          .starts_with("InvalidParameterValue"));
  EXPECT_TRUE(
      world
          .refuse({.statistic_values =
                       aws::StatisticSet{.sample_count = 1, .sum = 1, .minimum = 2, .maximum = 1}})
          .starts_with("InvalidParameterValue"));
  EXPECT_EQ(world.refuse({.value = 1, .storage_resolution = 5}),
            "InvalidParameterValue: The parameter " + name + ".StorageResolution must be 1 or 60.");
  EXPECT_EQ(world.refusal<aws::PutMetricData>({.namespace_ = "n"}),
            "MissingParameter: The parameter MetricData is required.");
  EXPECT_EQ(world.refusal<aws::PutMetricData>({.namespace_ = "AWS/EC2"}),
            "InvalidParameterValue: The value AWS/ for parameter Namespace is invalid.");
  EXPECT_EQ(
      world.refusal<aws::PutMetricData>(
          {.namespace_ = "n",
           .metric_data = std::vector<Datum>(1001, Datum{.metric_name = "loss", .value = 1})}),
      "InvalidParameterValue: The collection MetricData must not have a size greater than 1000.");
  EXPECT_TRUE(world.metrics->list("eu-west-1", "", "")->empty())
      << "what is refused leaves nothing";
  EXPECT_TRUE(world.call<aws::PutMetricData>(
      {.namespace_ = "n",
       .entity_metric_data = {{{.metric_data = {{{.metric_name = "loss", .value = 1}}}}}}}));
  EXPECT_EQ(world.metrics->list("eu-west-1", "", "")->size(), 1u);
}

TEST(CloudwatchOperations, ComputePercentilesOfSingleValues) {
  World world;
  const Instant at = world.clock.now() - 5min;
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  world.put({.timestamp = at, .values = values});
  world.put({.timestamp = at + 1min,
             .statistic_values =
                 aws::StatisticSet{.sample_count = 2, .sum = 3, .minimum = 1, .maximum = 2}});
  auto in = world.request(-10min, 0s, 60);
  in.statistics.reset();
  in.extended_statistics = {{"p50", "p99.9", "tm90"}};
  auto out = world.call<aws::GetMetricStatistics>(in);
  ASSERT_TRUE(out) << out.failure(aws::kService).message;
  ASSERT_EQ((*out).datapoints->size(), 1u) << "a statistic set has no percentile";
  const auto& point = (*out).datapoints->at(0);
  EXPECT_EQ(point.extended_statistics->at("p50"), 50);
  EXPECT_EQ(point.extended_statistics->at("p99.9"), 100);
  EXPECT_EQ(point.extended_statistics->at("tm90"), 45.5);
  EXPECT_FALSE(point.average);
  in.statistics = {{"Sum"}};
  out = world.call<aws::GetMetricStatistics>(in);
  EXPECT_EQ((*out).datapoints->size(), 2u);
}

TEST(CloudwatchOperations, ListMetricsByFilterAndPage) {
  World world;
  for (int i = 0; i < 501; ++i)
    world.put({.metric_name = "m" + std::to_string(1000 + i),
               .dimensions = {{{.name = "Host", .value = "algo-1"}}},
               .value = 1});
  world.put({.metric_name = "old", .timestamp = world.clock.now() - 4h, .value = 1});
  auto out = world.call<aws::ListMetrics>({});
  ASSERT_TRUE(out);
  EXPECT_EQ((*out).metrics->size(), 500u);
  out = world.call<aws::ListMetrics>({.next_token = (*out).next_token});
  EXPECT_EQ((*out).metrics->size(), 2u);
  EXPECT_FALSE((*out).next_token);
  const auto count = [&](const aws::ListMetricsInput& in) {
    return world.call<aws::ListMetrics>(in)->metrics->size();
  };
  EXPECT_EQ(count({.metric_name = "old"}), 1u);
  EXPECT_EQ(count({.metric_name = "old", .recently_active = "PT3H"}), 0u);
  EXPECT_EQ(count({.metric_name = "old", .dimensions = {{{.name = "Host"}}}}), 0u);
  EXPECT_EQ(count({.metric_name = "m1000", .dimensions = {{{.name = "Host", .value = "algo-1"}}}}),
            1u);
  EXPECT_EQ(count({.metric_name = "m1000", .dimensions = {{{.name = "Host", .value = "algo-2"}}}}),
            0u);
  EXPECT_EQ(world.refusal<aws::ListMetrics>({.next_token = "x"}),
            "InvalidParameterValue: Request parameter NextToken is invalid");
}

}  // namespace
}  // namespace trainyard::api::cloudwatch
