#include "base/activity_table.hpp"

#include <gtest/gtest.h>

#include <string>

namespace trainyard {
namespace {

std::string raw_bytes_of(const std::vector<ActivitySlot>& slots) {
  return {reinterpret_cast<const char*>(slots.data()), slots.size() * sizeof(ActivitySlot)};
}

TEST(ActivityTable, HasTheFirstSlotOfEachRank) {
  const auto slots =
      read_activity(raw_bytes_of({{3, 10, 20, 0}, {}, {1, 5, 6, 7}, {3, 99, 99, 0}}));
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].rank_and_one, 3u);
  EXPECT_EQ(slots[0].collectives, 10u);
  EXPECT_EQ(slots[0].output_bytes, 20u);
  EXPECT_EQ(slots[1].rank_and_one, 1u);
}

TEST(ActivityTable, BelievesNothingBeyondItsLimits) {
  EXPECT_TRUE(read_activity("").empty());
  EXPECT_TRUE(read_activity(std::string(31, '\xff')).empty()) << "no whole slot";
  EXPECT_TRUE(read_activity(std::string(kActivityBytes, '\xff')).empty()) << "no such rank";
  EXPECT_EQ(
      read_activity(raw_bytes_of({{kActivityRankMax, 1, 1, 0}, {kActivityRankMax + 1, 1, 1, 0}}))
          .size(),
      1u);
  std::vector<ActivitySlot> many;
  for (uint64_t rank = 1; rank <= kActivitySlots + 1; ++rank) many.push_back({rank, 1, 1, 0});
  EXPECT_EQ(read_activity(raw_bytes_of(many)).size(), kActivitySlots);
}

}  // namespace
}  // namespace trainyard
