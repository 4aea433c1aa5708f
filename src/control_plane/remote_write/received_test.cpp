#include "remote_write/received.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trainyard::remote_write {
namespace {

constexpr int64_t kNow = 1'800'000'000'000;

Result<ReceivedPoints> points(const TimeSeries& series) {
  return points_of({series}, "eu-west-1", from_milliseconds(kNow));
}

TEST(Received, ASeriesIsAMetricWithItsLabelsAsDimensions) {
  const auto found = points({{{"__name__", "up"}, {"job", "node"}}, {{1, kNow - 5}, {0, kNow}}});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->records.size(), 2U);
  const observe::MetricKey& key = found->records[0].key;
  EXPECT_EQ(key.region, "eu-west-1");
  EXPECT_EQ(key.name_space, "Prometheus");
  EXPECT_EQ(key.name, "up");
  EXPECT_EQ(key.dimensions, (std::map<std::string, std::string>{{"job", "node"}}));
  EXPECT_EQ(found->records[1].sample.at, from_milliseconds(kNow));
}

TEST(Received, SamplesThatTheStoreDoesNotTakeAreCounted) {
  const auto found = points({{{"__name__", "up"}},
                             {{std::nan(""), kNow},
                              {1, INT64_MIN},
                              {1, INT64_MAX},
                              {1, kNow - 15 * 86'400'000LL},
                              {HUGE_VAL, kNow},
                              {2, kNow}}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->records.size(), 1U);
  EXPECT_EQ(found->left_out, 5U);
}

TEST(Received, TheBytesOfKeysAreLimited) {
  TimeSeries large{{{"__name__", "up"}, {"label", std::string(1 << 20, 'x')}}, {}};
  for (int i = 0; i < 63; ++i) large.samples.push_back({1, kNow + i});
  EXPECT_TRUE(points(large));
  large.samples.push_back({std::nan(""), kNow});
  EXPECT_TRUE(points(large)) << "a sample that is left out has no key";
  large.samples.push_back({1, kNow});
  const auto refused = points(large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::exhausted);
  EXPECT_NE(refused.error().message.find("64 MiB"), std::string::npos) << refused.error().message;
}

TEST(Received, SeriesWithoutAProperNameAreRejected) {
  TimeSeries many{{{"__name__", "up"}}, {}};
  for (int i = 0; i < 31; ++i) many.labels.emplace_back("l" + std::to_string(i), "v");
  for (const TimeSeries& series :
       {TimeSeries{{{"job", "node"}}, {}}, TimeSeries{{{"__name__", ""}}, {}},
        TimeSeries{{{"__name__", std::string(256, 'x')}}, {}},
        TimeSeries{{{"__name__", "a"}, {"__name__", "b"}}, {}},
        TimeSeries{{{"__name__", "a"}, {"b", "1"}, {"b", "2"}}, {}}, many})
    EXPECT_EQ(points(series).error().kind, Kind::invalid);
}

}  // namespace
}  // namespace trainyard::remote_write
