#include "entry/rank_output.hpp"

#include <gtest/gtest.h>

#include "base/activity_table.hpp"
#include "os/files.hpp"

namespace trainyard::entry {
namespace {

TEST(RankOutput, CountsTheOutputOfEachRank) {
  const std::string path = testing::TempDir() + "activity";
  ASSERT_TRUE(os::write_file(path, std::string(kActivityBytes, '\0'), 0600));
  RankOutput output(path);
  output.add(4);
  output.add(5);
  output.count(5, 10);
  output.count(5, 7);
  output.count(6, 99);  // not of this host
  const auto bytes = os::read_file(path);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), kActivityBytes);
  const auto slots = read_activity(*bytes);
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].rank_and_one, 5u);
  EXPECT_EQ(slots[0].output_bytes, 0u);
  EXPECT_EQ(slots[1].rank_and_one, 6u);
  EXPECT_EQ(slots[1].output_bytes, 17u);
}

TEST(RankOutput, CountsNothingWithoutATable) {
  for (const char* path : {"", "/no/such/table"}) {
    RankOutput output(path);
    output.add(0);
    output.count(0, 1);
  }
}

}  // namespace
}  // namespace trainyard::entry
