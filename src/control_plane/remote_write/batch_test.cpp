#include "remote_write/batch.hpp"

#include <gtest/gtest.h>

namespace trainyard::remote_write {
namespace {

observe::MetricRecord point(const std::string& metric, int64_t at, double value) {
  return {{"eu-west-1", "n", metric, {}}, observe::sample_of(from_milliseconds(at), value)};
}

// Metrics whose name begins with "c" are counters, and those with "h" are halved.
NamedSeries named(const observe::MetricKey& key) {
  NamedSeries series;
  series.labels = {{"metric", key.name}, {"__name__", "m"}};
  series.counter = key.name[0] == 'c';
  series.factor = key.name[0] == 'h' ? .5 : 1;
  return series;
}

TimeSeries series(const std::string& metric, std::vector<WriteSample> samples) {
  return {{{"__name__", "m"}, {"metric", metric}}, std::move(samples)};
}

TEST(Batch, SortsSamplesAndKeepsTheLastOfEachInstant) {
  BatchMaker maker(named);
  const Batch batch = maker.make({point("b", 2, 20), point("a", 5, 1), point("b", 1, 10),
                                  point("b", 2, 21), point("h", 1, 3)});
  EXPECT_EQ(batch.series,
            (std::vector<TimeSeries>{series("a", {{1, 5}}), series("b", {{10, 1}, {21, 2}}),
                                     series("h", {{1.5, 1}})}));
  EXPECT_EQ(batch.samples, 4U);
  EXPECT_EQ(batch.left_out, 0U);
}

TEST(Batch, LeavesOutSamplesOlderThanThoseSentBefore) {
  BatchMaker maker(named);
  maker.make({point("a", 5, 1)});
  const Batch batch = maker.make({point("a", 4, 2), point("a", 5, 3), point("a", 6, 4)});
  EXPECT_EQ(batch.series, (std::vector<TimeSeries>{series("a", {{4, 6}})}));
  EXPECT_EQ(batch.left_out, 2U);
  EXPECT_TRUE(maker.make({point("a", 1, 1)}).series.empty());
}

TEST(Batch, SumsCounters) {
  BatchMaker maker(named);
  maker.make({point("c", 1, 10)});
  EXPECT_EQ(maker.make({point("c", 2, 5), point("c", 3, 1)}).series,
            (std::vector<TimeSeries>{series("c", {{15, 2}, {16, 3}})}));
}

TEST(Batch, MapsStatusesToOutcomes) {
  for (const int status : {200, 202, 204}) EXPECT_EQ(outcome_of(status), Outcome::accepted);
  for (const int status : {0, 301, 401, 403, 404, 429, 500, 503})
    EXPECT_EQ(outcome_of(status), Outcome::retry) << status;
  for (const int status : {400, 409, 413, 415, 422})
    EXPECT_EQ(outcome_of(status), Outcome::rejected) << status;
}

TEST(Batch, DoublesRetryDelaysUpToALimit) {
  EXPECT_EQ(retry_delay(0), 500ms);
  EXPECT_EQ(retry_delay(1), 500ms);
  EXPECT_EQ(retry_delay(2), 1s);
  EXPECT_EQ(retry_delay(7), 30s);
  EXPECT_EQ(retry_delay(4'000'000'000), 30s);
}

TEST(Batch, KeepsEachSampleOnceWhenSplit) {
  auto [first, second] =
      split_series({series("a", {{1, 1}}), series("b", {{1, 1}}), series("c", {{1, 1}})});
  EXPECT_EQ(first, (std::vector<TimeSeries>{series("a", {{1, 1}})}));
  EXPECT_EQ(second.size(), 2U);
  auto [early, late] = split_series({series("a", {{1, 1}, {2, 2}, {3, 3}})});
  EXPECT_EQ(early, (std::vector<TimeSeries>{series("a", {{1, 1}})}));
  EXPECT_EQ(late, (std::vector<TimeSeries>{series("a", {{2, 2}, {3, 3}})}));
}

}  // namespace
}  // namespace trainyard::remote_write
