#include "os/process_usage.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>

namespace trainyard::os {
namespace {

TEST(ProcessUsage, ParsesANameWithBlanksAndParentheses) {
  const auto usage = parse_process_stat(
      "17 (a ) (b)) S 1 17 17 0 -1 4194304 10 0 0 0 250 50 0 0 20 0 3 0 6000 8192 2 18446744", 1000,
      100, 4096);
  ASSERT_TRUE(usage) << usage.error().message;
  EXPECT_DOUBLE_EQ(usage->cpu_seconds, 3);
  EXPECT_DOUBLE_EQ(usage->start_seconds, 1060);
  EXPECT_EQ(usage->threads, 3U);
  EXPECT_EQ(usage->virtual_bytes, 8192U);
  EXPECT_EQ(usage->resident_bytes, 8192U);
  EXPECT_EQ(parse_process_stat("17 (a", 0, 100, 4096).error().kind, Kind::corrupt);
  EXPECT_EQ(parse_process_stat("17 (a) S 1", 0, 100, 4096).error().kind, Kind::corrupt);
}

TEST(ProcessUsage, UsageOfThisProcessIsPlausible) {
  const auto usage = usage_of_this_process();
  ASSERT_TRUE(usage) << usage.error().message;
  EXPECT_GT(usage->resident_bytes, 100'000U);
  EXPECT_GE(usage->virtual_bytes, usage->resident_bytes);
  EXPECT_GE(usage->threads, 1U);
  EXPECT_GE(usage->open_files, 1U);
  EXPECT_GE(usage->open_files_max, usage->open_files);
  EXPECT_LE(usage->start_seconds, double(std::time(nullptr)) + 2);
  EXPECT_GT(usage->start_seconds, double(std::time(nullptr)) - 86'400);
}

}  // namespace
}  // namespace trainyard::os
