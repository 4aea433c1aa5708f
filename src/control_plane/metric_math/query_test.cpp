#include "metric_math/query.hpp"

#include <gtest/gtest.h>

#include "observe/testing/test_world.hpp"

namespace trainyard::metric_math {
namespace {

using observe::MetricKey;

constexpr Instant kBegin = Instant{Duration{1'763'632'020'000 / 3'600'000 * 3'600'000}};

struct QueryWorld {
  observe::TemporaryDirectory directory;
  std::unique_ptr<observe::Metrics> metrics = *observe::open_metrics(directory.path());

  void put(const std::string& name, int minute, double value, std::string unit = "None") {
    ASSERT_OK(metrics->append({{key(name), observe::sample_of(kBegin + minute * Duration(1min) + 5s,
                                                              value, std::move(unit))}}));
  }
  static MetricKey key(const std::string& name) { return {"eu-west-1", "n", name, {}}; }
  static Query metric(const std::string& id, const std::string& name,
                      const std::string& statistic = "Sum") {
    return {.id = id,
            .metric = MetricSelection{.key = key(name), .statistic = *parse_statistic(statistic)}};
  }
  // Returns the values by minute, such as "0=1 1=2"; series are separated by "|".
  std::string evaluate_text(const std::vector<Query>& queries, const std::string& wanted) {
    const auto found = evaluate(*metrics, queries, {wanted}, {kBegin, kBegin + 4min});
    if (!found) return found.error().message;
    std::string text;
    for (const Series& series : found->at(wanted)) {
      text += (text.empty() ? "" : "|") + series.label + ":";
      for (const Point& point : series.points)
        text += " " + std::to_string((point.at - kBegin) / 1min) + "=" +
                std::to_string(int(point.value));
    }
    return text;
  }
};

TEST(Query, EvaluatesMetricsAndExpressionsInAnyOrder) {
  QueryWorld world;
  for (int minute = 0; minute < 3; ++minute) {
    world.put("requests", minute, 100);
    world.put("errors", minute, minute * 10);
  }
  const std::vector<Query> queries{{.id = "rate", .expression = "percent / 2", .label = "Rate"},
                                   {.id = "percent", .expression = "100 * errors / requests"},
                                   QueryWorld::metric("requests", "requests"),
                                   QueryWorld::metric("errors", "errors"),
                                   {.id = "all", .expression = "METRICS()"},
                                   {.id = "total", .expression = "SUM(errors)"}};
  EXPECT_EQ(world.evaluate_text(queries, "rate"), "Rate: 0=0 1=5 2=10");
  EXPECT_EQ(world.evaluate_text(queries, "percent"), "percent: 0=0 1=10 2=20");
  EXPECT_EQ(world.evaluate_text(queries, "all"),
            "all requests: 0=100 1=100 2=100|all errors: 0=0 1=10 2=20");
  EXPECT_EQ(world.evaluate_text(queries, "total"), "total: 0=30 1=30 2=30 3=30");
}

TEST(Query, MergesUnitsUnlessOneIsSelected) {
  QueryWorld world;
  world.put("m", 0, 1, "Seconds");
  world.put("m", 0, 2);
  auto query = QueryWorld::metric("m", "m");
  EXPECT_EQ(world.evaluate_text({query}, "m"), "m: 0=3");
  query.metric->unit = "Seconds";
  EXPECT_EQ(world.evaluate_text({query}, "m"), "m: 0=1");
}

TEST(Query, ComputesPercentilesFromSamples) {
  QueryWorld world;
  for (int i = 1; i <= 100; ++i) world.put("m", i % 2, i);
  EXPECT_EQ(world.evaluate_text({QueryWorld::metric("m", "m", "p50")}, "m"), "m: 0=50 1=49");
  EXPECT_EQ(world.evaluate_text({QueryWorld::metric("m", "m", "SampleCount")}, "m"),
            "m: 0=50 1=50");
}

TEST(Query, ExplainsErrors) {
  const auto fault = [](const std::vector<Query>& queries) {
    const auto checked = check_queries(queries);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(fault({QueryWorld::metric("a", "a"), QueryWorld::metric("a", "b")}),
            "The id 'a' is not unique");
  EXPECT_EQ(fault({{.id = "a", .expression = "b + 1"}}),
            "Error in expression 'a': Undefined id 'b'");
  EXPECT_EQ(fault({{.id = "a", .expression = "b + 1"}, {.id = "b", .expression = "-a"}}),
            "Error in expression 'a': It depends on itself");
  EXPECT_EQ(fault({{.id = "a", .expression = "a"}}),
            "Error in expression 'a': It depends on itself");
  EXPECT_EQ(fault({{.id = "a", .expression = "1 +"}}),
            "Error in expression 'a': Syntax error: the expression ends too early");
  QueryWorld world;
  EXPECT_EQ(world.evaluate_text({{.id = "a", .expression = "DIFF(1)"}}, "a"),
            "Error in expression 'a': Function DIFF takes a series");
}

TEST(Query, EvaluatesLongChainsOfExpressions) {
  QueryWorld world;
  world.put("m", 0, 1);
  std::vector<Query> queries{QueryWorld::metric("e0", "m")};
  for (int i = 1; i < int(kQueriesMax); ++i)
    queries.push_back(
        {.id = "e" + std::to_string(i), .expression = "e" + std::to_string(i - 1) + " + 1"});
  EXPECT_EQ(world.evaluate_text(queries, "e499"), "e499: 0=500");
}

TEST(Query, RoundsTheStartByItsAge) {
  const Instant now = kBegin + 100 * 24h;
  EXPECT_EQ(first_period(now - 1min - 7s, 60s, now), now - 2min);
  EXPECT_EQ(first_period(now - 7s, 10s, now), now - 10s);
  EXPECT_EQ(first_period(now - 20 * 24h - 7min, 60s, now), now - 20 * 24h - 10min);
  EXPECT_EQ(first_period(now - 70 * 24h - 7min, 60s, now), now - 70 * 24h - 1h);
}

}  // namespace
}  // namespace trainyard::metric_math
