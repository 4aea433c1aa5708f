// Compares stored metrics with a reference over random appends, seals, restarts and retirements.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/random.hpp"
#include "observe/metrics.hpp"
#include "observe/testing/reference_metrics.hpp"
#include "observe/testing/samples.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::observe {
namespace {

constexpr int kModelSeries = 5;
constexpr int64_t kModelStart = 1'700'000'000'000 / 3'600'000 * 3'600'000;

MetricKey model_key(uint64_t number) { return {"r", "n", "m" + std::to_string(number), {}}; }

struct ModelWorld {
  explicit ModelWorld(uint64_t seed) : random(seed) { restart(); }

  TemporaryDirectory directory;
  const MetricSettings settings{.recent_points_max = 400};
  SeededRandom random;
  ReferenceMetrics reference{settings};
  std::unique_ptr<Metrics> metrics;
  int64_t now = kModelStart;
  uint64_t batch = 0;

  void restart() {
    metrics.reset();
    auto opened = open_metrics(directory.path(), settings);
    ASSERT_OK(opened);
    metrics = std::move(*opened);
  }

  Sample any_sample(int64_t at) {
    Sample sample = sample_of(from_milliseconds(at), double(random.below(1 << 20)) / 7 - 1000,
                              random.chance(10) ? "Seconds" : "None");
    if (random.chance(8)) {
      sample.count = double(1 + random.below(5));
      sample.minimum = sample.sum - 1;
    }
    return sample;
  }
  int64_t any_time() {
    switch (random.below(6)) {
      case 0:
        return now - int64_t(random.below(40)) * 86'400'000;
      case 1:
        return now - int64_t(random.below(600)) * 60'000;
      case 2:
        return now;
      default:
        return now += int64_t(random.below(200'000));
    }
  }
  void append() {
    std::vector<MetricSeries> all;
    const bool burst = random.chance(12);  // many points with the same time
    for (uint64_t left = 1 + random.below(4); left > 0; --left) {
      MetricSeries series{model_key(random.below(kModelSeries)), {}};
      const int64_t at = any_time();
      for (uint64_t count = random.below(burst ? 300 : 60); count > 0; --count)
        series.samples.push_back(any_sample(burst ? at : any_time()));
      all.push_back(std::move(series));
    }
    std::vector<MetricRecord> records;
    for (const auto& [key, samples] : all)
      for (const Sample& sample : samples) {
        records.push_back({key, sample});
        reference.append(key, sample);
      }
    switch (random.below(3)) {
      case 0:
        ASSERT_OK(metrics->append(records));
        break;
      case 1:
        ASSERT_OK(metrics->append_batch("w", ++batch, records));
        if (random.chance(5)) restart();
        ASSERT_OK(metrics->append_batch("w", batch, records));
        break;
      default:
        ASSERT_OK(metrics->append_series_allowed(all));
    }
  }
  void retire() {
    now += int64_t(random.below(30)) * 86'400'000 + int64_t(random.below(86'400'000));
    const Instant at = from_milliseconds(now + (random.chance(8) ? 460 * 86'400'000LL : 0));
    now = to_milliseconds(at);
    reference.retire(at);
    ASSERT_OK(metrics->retire(at));
  }
  void query() {
    StatisticsQuery query{.key = model_key(random.below(kModelSeries + 1)),
                          .from = from_milliseconds(any_time() - 86'400'000)};
    if (random.chance(3)) query.from = from_milliseconds(kModelStart - 100 * 86'400'000LL);
    query.to = query.from + Duration(random.below(400LL * 86'400'000));
    query.period = Duration(1 + random.below(7'200'000));
    if (random.chance(4)) query.unit = "Seconds";
    const auto samples = metrics->samples(query, SIZE_MAX);
    ASSERT_OK(samples);
    ASSERT_TRUE(same_samples(*samples, reference.samples(query)));
    const auto points = metrics->statistics(query);
    ASSERT_OK(points);
    std::vector<Sample> found;
    for (const Datapoint& each : *points)
      found.push_back({each.at, each.count, each.sum, each.minimum, each.maximum, each.unit});
    ASSERT_TRUE(same_samples(found, reference.statistics(query)));
  }
  void check_last() {
    const MetricKey key = model_key(random.below(kModelSeries));
    const auto all = reference.samples(
        {.key = key, .from = from_milliseconds(INT64_MIN), .to = from_milliseconds(INT64_MAX)});
    const auto last = metrics->last(key);
    ASSERT_OK(last);
    ASSERT_EQ(last->has_value(), !all.empty());
    if (*last) {
      ASSERT_TRUE(same_sample(**last, all.back()));
    }
    ASSERT_EQ(*metrics->list("r", "", ""), reference.keys());
  }
  void step() {
    switch (random.below(16)) {
      case 0:
        return restart();
      case 1:
        return random.chance(2) ? retire() : query();
      case 2:
      case 3:
      case 4:
      case 5:
        return query();
      case 6:
        return check_last();
      default:
        return append();
    }
  }
};

TEST(MetricsModel, EqualsTheReferenceOverRandomHistories) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    ModelWorld world(seed);
    for (int i = 0; i < 300; ++i) {
      world.step();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
}

TEST(MetricsModel, RetiresALongSeriesInParts) {
  ModelWorld world(3);
  std::vector<MetricRecord> records;
  for (int i = 0; i < 60'000; ++i) {  // some 450 blocks
    records.push_back({model_key(0), world.any_sample(kModelStart + i * 20'000LL)});
    world.reference.append(records.back().key, records.back().sample);
  }
  ASSERT_OK(world.metrics->append(records));
  for (const Duration age : {20 * 24h, 29 * 24h, 70 * 24h}) {
    const Instant now = from_milliseconds(kModelStart) + age;
    world.reference.retire(now);
    ASSERT_OK(world.metrics->retire(now));
    for (int i = 0; i < 5; ++i) world.query();
    world.check_last();
  }
}

// Readers see each acknowledged point once, even while seals and retirements run.
TEST(MetricsModel, ReadsEachPointOnceDuringSeals) {
  TemporaryDirectory directory;
  const auto metrics = *open_metrics(directory.path(), {.recent_points_max = 64});
  constexpr int kPoints = 3'000;
  std::atomic<int> acknowledged = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int reader = 0; reader < 2; ++reader)
    threads.emplace_back([&] {
      while (!done) {
        const int before = acknowledged;
        const auto found = metrics->samples({.key = model_key(0),
                                             .from = from_milliseconds(kModelStart),
                                             .to = from_milliseconds(kModelStart + kPoints)},
                                            SIZE_MAX);
        ASSERT_OK(found);
        ASSERT_GE(int(found->size()), before);
        for (size_t i = 0; i < found->size(); ++i) ASSERT_EQ((*found)[i].sum, double(i));
        const auto last = metrics->last(model_key(0));
        ASSERT_OK(last);
        ASSERT_GE(*last ? (*last)->sum : 0, found->empty() ? 0 : found->back().sum);
      }
    });
  threads.emplace_back([&] {
    while (!done) {
      ASSERT_OK(metrics->append({{model_key(1), sample_of(from_milliseconds(kModelStart), 1)}}));
      ASSERT_OK(metrics->retire(from_milliseconds(kModelStart + kPoints)));
    }
  });
  for (int i = 0; i < kPoints; ++i) {
    ASSERT_OK(metrics->append(
        {{model_key(0), sample_of(from_milliseconds(kModelStart + i), double(i))}}));
    acknowledged = i + 1;
  }
  done = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace trainyard::observe
