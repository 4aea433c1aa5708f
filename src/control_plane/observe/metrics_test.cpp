#include "observe/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "observe/testing/test_world.hpp"

namespace trainyard::observe {
namespace {

const MetricKey kLoss{
    "eu-west-1", "/aws/sagemaker/TrainingJobs", "train:loss", {{"TrainingJobName", "digits"}}};
constexpr int64_t kStart = 1'763'632'020'000 / 3'600'000 * 3'600'000;

struct MetricWorld {
  TemporaryDirectory directory;
  std::unique_ptr<Metrics> metrics = open();
  std::unique_ptr<Metrics> open() {
    auto opened = open_metrics(directory.path());
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  void restart() {
    metrics.reset();
    metrics = open();
  }
  std::vector<Datapoint> statistics(const MetricKey& key, int64_t from, int64_t to, Duration period,
                                    std::string unit = "") {
    auto found = metrics->statistics({.key = key,
                                      .from = from_milliseconds(from),
                                      .to = from_milliseconds(to),
                                      .period = period,
                                      .unit = unit});
    EXPECT_TRUE(found) << found.error().message;
    return *found;
  }
};

MetricRecord point(int64_t at, double value, std::string unit = "None") {
  return {kLoss, sample_of(from_milliseconds(at), value, unit)};
}

TEST(Metrics, ComputeStatisticsByPeriodAndAfterARestart) {
  MetricWorld world;
  ASSERT_OK(world.metrics->append({point(kStart, 4), point(kStart + 59'999, 2),
                                   point(kStart + 60'000, 1), point(kStart + 60'000, 3)}));
  world.restart();
  const auto points = world.statistics(kLoss, kStart, kStart + 120'000, 60s);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].at, from_milliseconds(kStart));
  EXPECT_EQ(points[0].count, 2);
  EXPECT_EQ(points[0].average(), 3);
  EXPECT_EQ(points[0].maximum, 4);
  EXPECT_EQ(points[1].minimum, 1);
  EXPECT_EQ(points[1].sum, 4);
  EXPECT_EQ(world.statistics(kLoss, kStart, kStart + 60'000, 60s).size(), 1u)
      << "the end is exclusive";
  EXPECT_EQ(world.statistics(kLoss, kStart + 30'000, kStart + 120'000, 60s)[0].at,
            from_milliseconds(kStart + 30'000));
  EXPECT_EQ(world.statistics(kLoss, kStart, kStart + 120'000, 1h).size(), 1u);
  EXPECT_TRUE(world
                  .statistics({"us-east-1", kLoss.name_space, kLoss.name, kLoss.dimensions}, kStart,
                              kStart + 120'000, 60s)
                  .empty());
  EXPECT_TRUE(world
                  .statistics({kLoss.region, kLoss.name_space, kLoss.name, {}}, kStart,
                              kStart + 120'000, 60s)
                  .empty())
      << "dimensions identify the metric";
  EXPECT_EQ(world.metrics->statistics({.key = kLoss, .period = 0s}).error().kind, Kind::invalid);
}

TEST(Metrics, SeparateUnits) {
  MetricWorld world;
  ASSERT_OK(
      world.metrics->append({point(kStart, 1, "Seconds"), point(kStart, 1000, "Milliseconds")}));
  EXPECT_EQ(world.statistics(kLoss, kStart, kStart + 60'000, 60s).size(), 2u);
  const auto seconds = world.statistics(kLoss, kStart, kStart + 60'000, 60s, "Seconds");
  ASSERT_EQ(seconds.size(), 1u);
  EXPECT_EQ(seconds[0].unit, "Seconds");
}

TEST(Metrics, ReturnTheLatestSampleAsLast) {
  MetricWorld world;
  EXPECT_FALSE(world.metrics->last(kLoss)->has_value());
  ASSERT_OK(world.metrics->append({point(kStart + 5, 7), point(kStart, 9), point(kStart + 5, 8)}));
  EXPECT_EQ((*world.metrics->last(kLoss))->sum, 8);
}

TEST(Metrics, LimitTheSeriesOfAGroup) {
  TemporaryDirectory directory;
  const MetricSettings settings{.group_of =
                                    [](const MetricKey& key) {
                                      const auto found = key.dimensions.find("TrainingJobName");
                                      return found == key.dimensions.end() ? "" : found->second;
                                    },
                                .group_series_max = 3};
  auto metrics = std::move(*open_metrics(directory.path(), settings));
  const auto of = [](const std::string& job, int metric) {
    MetricRecord record = point(kStart, 1);
    record.key.name = "m" + std::to_string(metric);
    record.key.dimensions = {{"TrainingJobName", job}};
    return record;
  };
  ASSERT_OK(metrics->append({of("a", 1), of("a", 2), of("b", 1), of("a", 1)}));
  const auto refused = metrics->append({of("a", 3), of("a", 4)});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is(MetricFault::too_many_series));
  EXPECT_EQ(metrics->list("eu-west-1", "", "")->size(), 3u) << "a rejected append leaves nothing";
  ASSERT_OK(metrics->append_batch("agent", 1, {of("a", 3), of("a", 4), of("b", 2), of("a", 1)}));
  EXPECT_EQ(metrics->list("eu-west-1", "", "")->size(), 5u)
      << "only the fourth metric of a is left out";
  EXPECT_EQ(*metrics->append_allowed({of("a", 4), of("a", 5), of("b", 3), of("a", 1)}), 2u);
  EXPECT_EQ(metrics->list("eu-west-1", "", "")->size(), 6u) << "the third metric of b is stored";
  metrics.reset();
  metrics = std::move(*open_metrics(directory.path(), settings));
  EXPECT_FALSE(metrics->append({of("a", 5)})) << "the limit applies after a restart";
  ASSERT_OK(metrics->append({of("", 1), of("", 2), of("", 3), of("", 4)}));
  ASSERT_OK(metrics->retire(from_milliseconds(kStart) + 456 * 24h));
  ASSERT_OK(metrics->append({of("a", 5)}));
}

TEST(Metrics, ReadSamplesByTimeAndUnitUpToALimit) {
  MetricWorld world;
  ASSERT_OK(world.metrics->append({point(kStart + 2, 3), point(kStart, 1), point(kStart, 2),
                                   point(kStart + 1, 9, "Seconds"), point(kStart + 10, 4)}));
  const auto samples = [&](std::string unit, size_t count_max) {
    return world.metrics->samples({.key = kLoss,
                                   .from = from_milliseconds(kStart),
                                   .to = from_milliseconds(kStart + 10),
                                   .unit = std::move(unit)},
                                  count_max);
  };
  const auto plain = samples("None", 3);
  ASSERT_OK(plain);
  ASSERT_EQ(plain->size(), 3u);
  EXPECT_EQ((*plain)[0].sum, 1);
  EXPECT_EQ((*plain)[1].sum, 2);
  EXPECT_EQ((*plain)[2].at, from_milliseconds(kStart + 2));
  EXPECT_EQ(samples("", 4)->size(), 4u);
  EXPECT_EQ(samples("", 3).error().kind, Kind::exhausted);
}

TEST(Metrics, LeaveOutValuesThatAreNotFinite) {
  MetricWorld world;
  ASSERT_OK(world.metrics->append_batch(
      "a", 1, {point(kStart, NAN), point(kStart, INFINITY), point(kStart, 1)}));
  EXPECT_EQ(world.statistics(kLoss, kStart, kStart + 1, 60s)[0].count, 1);
}

TEST(Metrics, AppendABatchOnce) {
  MetricWorld world;
  ASSERT_OK(world.metrics->append_batch("digits/1/0", 1, {point(kStart, 1)}));
  ASSERT_OK(world.metrics->append_batch("digits/1/0", 1, {point(kStart, 1)}));
  ASSERT_OK(world.metrics->append_batch("digits/1/1", 1, {point(kStart, 1)}));
  world.restart();
  ASSERT_OK(world.metrics->append_batch("digits/1/0", 1, {point(kStart, 1)}));
  ASSERT_OK(world.metrics->append_batch("digits/1/0", 3, {}));
  EXPECT_EQ(*world.metrics->last_batch("digits/1/0"), 3u);
  EXPECT_EQ(*world.metrics->last_batch("nobody"), 0u);
  EXPECT_EQ(world.statistics(kLoss, kStart, kStart + 1, 60s)[0].count, 2);
}

TEST(Metrics, AreListedByNamespaceAndName) {
  MetricWorld world;
  MetricRecord other = point(kStart, 1);
  other.key.name = "accuracy";
  other.key.dimensions = {{"Host", "digits/algo-1"}, {"quote\"", "\xff"}};
  ASSERT_OK(world.metrics->append({point(kStart, 1), other}));
  EXPECT_EQ(world.metrics->list("eu-west-1", "", "")->size(), 2u);
  const auto named = world.metrics->list("eu-west-1", kLoss.name_space, kLoss.name);
  ASSERT_EQ(named->size(), 1u);
  EXPECT_EQ((*named)[0], kLoss);
  EXPECT_TRUE(world.metrics->list("eu-west-1", "elsewhere", "")->empty());
}

TEST(Metrics, AggregateAndRemoveOldPoints) {
  MetricWorld world;
  std::vector<MetricRecord> records;
  for (int minute = 0; minute < 120; ++minute)
    records.push_back(point(kStart + minute * 60'000, minute));
  ASSERT_OK(world.metrics->append(records));
  const auto check = [&](Duration age, Duration finest, size_t points) {
    ASSERT_OK(world.metrics->retire(from_milliseconds(kStart) + 2h + age));
    const auto fine = world.statistics(kLoss, kStart, kStart + 7'200'000, finest);
    ASSERT_EQ(fine.size(), points);
    double sum = 0, count = 0;
    for (const auto& each : fine) sum += each.sum, count += each.count;
    EXPECT_EQ(count, points ? 120 : 0);
    EXPECT_EQ(sum, points ? 119 * 60 : 0);
  };
  check(14 * 24h, 60s, 120);
  check(16 * 24h, 60s, 24);
  check(16 * 24h, 60s, 24);
  check(64 * 24h, 60s, 2);
  EXPECT_EQ(world.metrics->list("eu-west-1", "", "")->size(), 1u);
  check(456 * 24h, 60s, 0);
  EXPECT_TRUE(world.metrics->list("eu-west-1", "", "")->empty());
}

TEST(Metrics, ShareCommitsOfManyThreads) {
  MetricWorld world;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 25; ++i) {
        EXPECT_TRUE(
            world.metrics->append_batch(std::to_string(t), uint64_t(i), {point(kStart + i, 1)}));
        EXPECT_TRUE(world.metrics->last(kLoss));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(world.statistics(kLoss, kStart, kStart + 1000, 60s)[0].count, 100);
}

}  // namespace
}  // namespace trainyard::observe
