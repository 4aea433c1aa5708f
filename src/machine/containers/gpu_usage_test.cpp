#include "containers/gpu_usage.hpp"

#include <gtest/gtest.h>

namespace trainyard::containers {
namespace {

TEST(GpuUsage, ALineForEachCard) {
  const auto all = parse_gpu_usage("0, 87, 20000, 80000\n1, 0, 0, 80000\n");
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].busy, 87);
  EXPECT_EQ((*all)[0].memory_percent, 25);
  EXPECT_EQ((*all)[1].index, 1);
  EXPECT_EQ((*all)[1].busy, 0);
}

TEST(GpuUsage, MissingValuesCountAsZero) {
  const auto all = parse_gpu_usage("3, [N/A], [N/A], [N/A]\n\n");
  ASSERT_TRUE(all);
  EXPECT_EQ((*all)[0].index, 3);
  EXPECT_EQ((*all)[0].busy, 0);
  EXPECT_EQ((*all)[0].memory_percent, 0);
}

TEST(GpuUsage, AnythingElseIsCorrupt) {
  for (const char* text : {"No devices were found", "0, 1, 2", "x, 1, 2, 3"})
    EXPECT_EQ(parse_gpu_usage(text).error().kind, Kind::corrupt) << text;
  EXPECT_TRUE(parse_gpu_usage("")->empty());
}

TEST(GpuUsage, RunsNoToolWithoutGpus) {
  EXPECT_TRUE(gpu_usage({"/dev/nvidiactl", "/dev/full"})->empty());
}

}  // namespace
}  // namespace trainyard::containers
