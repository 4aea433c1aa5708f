#include "agent/output/usage_meter.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace trainyard::agent {
namespace {

TEST(UsageMeter, CountsCoresAndShares) {
  using std::chrono::seconds;
  UsageMeter meter;
  EXPECT_EQ(meter.next_measurement(), seconds(0));
  EXPECT_TRUE(
      meter.measure({seconds(1), 1 << 20}, 4 << 20, DiskUsage{1, 4}, {}, {5, 0}, {}, seconds(10))
          .empty());
  EXPECT_FALSE(meter.measured());
  EXPECT_EQ(meter.next_measurement(), seconds(11));
  const auto points = meter.measure({seconds(5), 1 << 20}, 4 << 20, DiskUsage{1, 4},
                                    {{80, 10}, {40, 30}}, {7, 0}, {}, seconds(12));
  EXPECT_TRUE(meter.measured());
  EXPECT_EQ(meter.next_measurement(), seconds(13)) << "each second";
  ASSERT_EQ(points.size(), 6u);
  EXPECT_EQ(points[3].name, "GPUUtilization");
  EXPECT_DOUBLE_EQ(points[3].value, 120);
  EXPECT_DOUBLE_EQ(points[4].value, 40);
  EXPECT_DOUBLE_EQ(points[0].value, 200);
  EXPECT_DOUBLE_EQ(points[1].value, 25);
  EXPECT_DOUBLE_EQ(points[2].value, 25);
  EXPECT_TRUE(points[0].of_host);
  EXPECT_EQ(points[5].name, "InputBytesFetched");
  EXPECT_DOUBLE_EQ(points[5].value, 7);
  const auto later =
      meter.measure({seconds(5), 1 << 20}, 4 << 20, DiskUsage{1, 4}, {}, {7, 9}, {}, seconds(72));
  ASSERT_EQ(later.size(), 4u);
  EXPECT_EQ(later[3].name, "InputBytesFromCache");
  EXPECT_DOUBLE_EQ(later[3].value, 9);
}

TEST(UsageMeter, ReportsThePointsOfSeveralSecondsTogether) {
  using std::chrono::seconds;
  UsageMeter meter;
  const auto reported_at = [&](int64_t second) {
    const wire::MetricPoint point{"CPUUtilization", {}, 1, true};
    return meter.collect({point}, seconds(second)).size();
  };
  EXPECT_TRUE(meter.collect({}, seconds(9)).empty()) << "the first call of measure() has no points";
  EXPECT_EQ(reported_at(10), 1u) << "the first point is reported at once";
  for (int64_t second = 11; second < 15; ++second) EXPECT_EQ(reported_at(second), 0u);
  EXPECT_EQ(reported_at(15), 5u);
  EXPECT_EQ(reported_at(16), 0u);
  EXPECT_EQ(meter.take_rest().size(), 1u);
  EXPECT_TRUE(meter.take_rest().empty());
}

TEST(UsageMeter, LeavesOutWhatAGpuDoesNotProvide) {
  using std::chrono::seconds;
  const auto points_of = [](const std::vector<containers::GpuUsage>& gpus) {
    UsageMeter meter;
    (void)meter.measure({}, 0, {}, gpus, {}, {}, seconds(10));
    std::vector<std::pair<std::string, double>> points;
    for (const auto& point : meter.measure({}, 0, {}, gpus, {}, {}, seconds(12)))
      if (point.name.starts_with("GPU")) points.emplace_back(point.name, point.value);
    return points;
  };
  using Points = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(points_of({{{}, 10}, {{}, 30}}), (Points{{"GPUMemoryUtilization", 40}}));
  EXPECT_EQ(points_of({{{}, 10}, {70, {}}}),
            (Points{{"GPUUtilization", 70}, {"GPUMemoryUtilization", 10}}));
  EXPECT_EQ(points_of({{0, 0}}), (Points{{"GPUUtilization", 0}, {"GPUMemoryUtilization", 0}}));
  EXPECT_EQ(points_of({}), Points{});
}

}  // namespace
}  // namespace trainyard::agent
