#include "remote_write/received.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trainyard::remote_write {
namespace {

constexpr int64_t kNow = 1'800'000'000'000;

Result<ReceivedPoints> points(const TimeSeries& series) {
  return points_of({series}, "eu-west-1", from_milliseconds(kNow));
}

TEST(Received, ConvertsASeriesToAMetricWithDimensions) {
  const auto found = points({{{"__name__", "up"}, {"job", "node"}}, {{1, kNow - 5}, {0, kNow}}});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->series.size(), 1U);
  const observe::MetricKey& key = found->series[0].key;
  EXPECT_EQ(key.region, "eu-west-1");
  EXPECT_EQ(key.name_space, "Prometheus");
  EXPECT_EQ(key.name, "up");
  EXPECT_EQ(key.dimensions, (std::map<std::string, std::string>{{"job", "node"}}));
  EXPECT_EQ(found->count, 2U);
  ASSERT_EQ(found->series[0].samples.size(), 2U);
  EXPECT_EQ(found->series[0].samples[1].at, from_milliseconds(kNow));
}

TEST(Received, CountsSamplesThatAreLeftOut) {
  const auto found = points({{{"__name__", "up"}},
                             {{std::nan(""), kNow},
                              {1, INT64_MIN},
                              {1, INT64_MAX},
                              {1, kNow - 15 * 86'400'000LL},
                              {HUGE_VAL, kNow},
                              {2, kNow}}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->series.size(), 1U);
  EXPECT_EQ(found->count, 1U);
  EXPECT_EQ(found->left_out, 5U);
}

TEST(Received, LimitsTheBytesOfKeys) {
  const auto large = [](int number, double value) {
    return TimeSeries{{{"__name__", "up"}, {"label", std::string(1 << 20, char('A' + number))}},
                      {{value, kNow}, {value, kNow + 1}}};
  };
  const auto received = [](const std::vector<TimeSeries>& all) {
    return points_of(all, "eu-west-1", from_milliseconds(kNow));
  };
  std::vector<TimeSeries> all;
  for (int i = 0; i < 63; ++i) all.push_back(large(i, 1));
  EXPECT_TRUE(received(all)) << "a key is counted once for all of its points";
  all.push_back(large(63, std::nan("")));
  EXPECT_TRUE(received(all)) << "a series that is left out has no key";
  all.push_back(large(64, 1));
  const auto refused = received(all);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::exhausted);
  EXPECT_NE(refused.error().message.find("64 MiB"), std::string::npos) << refused.error().message;
}

TEST(Received, RejectsSeriesWithoutAValidName) {
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
