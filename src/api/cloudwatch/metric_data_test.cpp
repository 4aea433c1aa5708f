#include "shapes/cloudwatch.hpp"

#include "cloudwatch/operations.hpp"
#include "operations/testing/operation_caller.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;

struct DataWorld : OperationsWorld {
  DataWorld() : OperationsWorld(add_operations) {
    clock.set(*parse_iso8601("2026-11-27T10:00:00Z"));
    for (int minute = 5; minute > 0; --minute) {
      const Instant at = clock.now() - minute * Duration(1min);
      const auto out = call<aws::PutMetricData>(
          {.namespace_ = "n",
           .metric_data = {{{.metric_name = "requests", .timestamp = at, .value = 100},
                            {.metric_name = "errors", .timestamp = at, .value = minute}}}});
      EXPECT_TRUE(out) << out.failure(aws::kService).message;
    }
  }
  static aws::MetricDataQuery metric(const std::string& id, const std::string& name,
                                     const std::string& stat = "Sum") {
    return {.id = id,
            .metric_stat =
                aws::MetricStat{.metric = aws::Metric{.namespace_ = "n", .metric_name = name},
                                .period = 60,
                                .stat = stat}};
  }
  aws::GetMetricDataInput request(std::vector<aws::MetricDataQuery> queries) {
    return {.metric_data_queries = std::move(queries),
            .start_time = clock.now() - 10min,
            .end_time = clock.now()};
  }
  std::string refuse(const aws::GetMetricDataInput& in) { return refusal<aws::GetMetricData>(in); }
  // "ID LABEL STATUS: VALUES", separated by "|".
  std::string text_of(const aws::GetMetricDataInput& in) {
    const auto out = call<aws::GetMetricData>(in);
    if (!out) return out.failure(aws::kService).message;
    std::string text;
    for (const auto& each : *(*out).metric_data_results) {
      text +=
          (text.empty() ? "" : "|") + *each.id + " " + *each.label + " " + *each.status_code + ":";
      for (const double value : *each.values) text += " " + std::to_string(int(value));
      EXPECT_EQ(each.values->size(), each.timestamps->size());
    }
    token = (*out).next_token;
    return text;
  }
  std::optional<std::string> token;
};

TEST(GetMetricData, ReturnsStatisticsAndExpressions) {
  DataWorld world;
  auto errors = DataWorld::metric("e", "errors");
  EXPECT_EQ(world.text_of(world.request({errors})), "e errors Sum Complete: 1 2 3 4 5")
      << "the latest is first";
  errors.return_data = false;
  auto in = world.request({{.id = "percent", .expression = "100 * e / r", .label = "Percent"},
                           {.id = "total", .expression = "SUM(METRICS())"},
                           errors,
                           DataWorld::metric("r", "requests")});
  in.scan_by = "TimestampAscending";
  EXPECT_EQ(world.text_of(in),
            "percent Percent Complete: 5 4 3 2 1|total total Complete: 105 104 103 102 101|"
            "r requests Sum Complete: 100 100 100 100 100");
  EXPECT_EQ(world.text_of(world.request({DataWorld::metric("x", "absent")})),
            "x absent Sum Complete:");
  EXPECT_EQ(world.text_of(world.request({errors})), "");
  EXPECT_EQ(world.text_of(world.request({DataWorld::metric("p", "requests", "p99")})),
            "p requests p99 Complete: 100 100 100 100 100");
}

TEST(GetMetricData, ReturnsEachValueOnOnePage) {
  DataWorld world;
  auto in = world.request({DataWorld::metric("e", "errors"), DataWorld::metric("x", "absent"),
                           DataWorld::metric("r", "requests")});
  in.max_datapoints = 4;
  EXPECT_EQ(world.text_of(in), "e errors Sum PartialData: 1 2 3 4");
  in.next_token = world.token;
  EXPECT_EQ(world.text_of(in),
            "e errors Sum Complete: 5|x absent Sum Complete:|r requests Sum PartialData: 100 100 "
            "100");
  in.next_token = world.token;
  EXPECT_EQ(world.text_of(in), "r requests Sum Complete: 100 100");
  EXPECT_FALSE(world.token);
  in.next_token = "next";
  EXPECT_EQ(world.refuse(in), "InvalidNextToken: Invalid next token");
}

TEST(GetMetricData, RejectsInvalidRequestsWithAwssTexts) {
  DataWorld world;
  auto in = world.request({{.id = "a", .label = "x"}});
  EXPECT_EQ(world.refuse(in),
            "ValidationError: The parameter MetricDataQueries.member.1.MetricStat is required.\n");
  in = world.request({DataWorld::metric("e", "errors")});
  in.end_time = *in.start_time + 900ms;
  EXPECT_EQ(world.refuse(in),
            "ValidationError: The parameter StartTime must not equal parameter EndTime.");
  in.end_time = *in.start_time - 1s;
  EXPECT_EQ(world.refuse(in),
            "ValidationError: The parameter EndTime must be greater than StartTime.");
  EXPECT_EQ(world.refuse(world.request({DataWorld::metric("E", "errors")})),
            "ValidationError: The value E for parameter MetricDataQueries.member.1.Id is not "
            "matching the expected pattern ^[a-z][a-zA-Z0-9_]*$.");
  EXPECT_EQ(world.refuse(world.request({DataWorld::metric("e", "errors", "p101")})),
            "ValidationError: The value p101 for parameter "
            "MetricDataQueries.member.1.MetricStat.Stat is not supported.");
  EXPECT_EQ(world.refuse(world.request({{.id = "a", .expression = "b +"}})),
            "ValidationError: Error in expression 'a': Syntax error: the expression ends too "
            "early");
  EXPECT_EQ(world.refuse(world.request(
                {DataWorld::metric("e", "errors"), DataWorld::metric("e", "errors")})),
            "ValidationError: The id 'e' is not unique");
  EXPECT_EQ(world.refuse(world.request(
                std::vector<aws::MetricDataQuery>(501, DataWorld::metric("e", "errors")))),
            "ValidationError: The collection MetricDataQueries must not have a size greater than "
            "500.");
}

}  // namespace
}  // namespace trainyard::api::cloudwatch
