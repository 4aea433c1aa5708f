#include "base/activity_table.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace trainyard {
namespace {

std::string raw_bytes_of(const std::vector<ActivitySlot>& slots) {
  return {reinterpret_cast<const char*>(slots.data()), slots.size() * sizeof(ActivitySlot)};
}

TEST(ActivityTable, ReturnsTheFirstSlotOfEachRank) {
  const auto slots =
      read_activity(raw_bytes_of({{3, 10, 20, 0}, {}, {1, 5, 6, 7}, {3, 99, 99, 0}}));
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].rank_and_one, 3u);
  EXPECT_EQ(slots[0].collectives, 10u);
  EXPECT_EQ(slots[0].output_bytes, 20u);
  EXPECT_EQ(slots[1].rank_and_one, 1u);
}

TEST(ActivityTable, IgnoresSlotsBeyondItsLimits) {
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

// A table with one slot and its record.
std::string table_with(const ActivitySlot& slot, const CallRecord& calls) {
  std::string table(kActivityTableBytes, '\0');
  std::memcpy(table.data(), &slot, sizeof slot);
  std::memcpy(table.data() + kActivityBytes, &calls, sizeof calls);
  return table;
}

CallRecord record_of_rank_1_of_4() {
  CallRecord calls;
  calls.writer = 7;
  calls.ranks = 4;
  calls.rank = 1;
  calls.completed = 812;
  return calls;
}

TEST(ActivityTable, ReturnsTheRecordOfASlot) {
  const auto records = read_calls(table_with({2, 812, 0, 0}, record_of_rank_1_of_4()));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].rank, 1u);
  EXPECT_EQ(records[0].calls.completed, 812u);
  EXPECT_EQ(read_activity(table_with({2, 812, 0, 0}, record_of_rank_1_of_4())).size(), 1u);
}

TEST(ActivityTable, IgnoresInvalidRecords) {
  const auto count = [](const CallRecord& calls) {
    return read_calls(table_with({2, 0, 0, 0}, calls)).size();
  };
  CallRecord calls = record_of_rank_1_of_4();
  EXPECT_EQ(count(calls), 1u);
  calls.ranks = 1;
  EXPECT_EQ(count(calls), 0u) << "a group of one rank";
  calls.ranks = kActivityRankMax + 1;
  EXPECT_EQ(count(calls), 0u);
  calls = record_of_rank_1_of_4();
  calls.rank = 4;
  EXPECT_EQ(count(calls), 0u);
  calls = record_of_rank_1_of_4();
  calls.writer = 0;
  EXPECT_EQ(count(calls), 0u) << "free";
  EXPECT_TRUE(read_calls(table_with({0, 0, 0, 0}, record_of_rank_1_of_4())).empty());
  EXPECT_TRUE(read_calls(std::string(kActivityBytes, '\1')).empty())
      << "a table of an earlier release, without records";
}

TEST(ActivityTable, ReplacesInvalidValuesOfARecord) {
  CallRecord calls = record_of_rank_1_of_4();
  calls.kind = ~uint64_t{0};
  calls.links[0] = {5, 9, 9};
  calls.links[1] = {4, 9, 9};
  const auto records = read_calls(table_with({2, 0, 0, 0}, calls));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(to_string(CallKind(records[0].calls.kind)), "collective");
  EXPECT_EQ(records[0].calls.links[0].peer_and_one, 0u) << "not a rank of the group";
  EXPECT_EQ(records[0].calls.links[1].peer_and_one, 4u);
}

TEST(ActivityTable, NamesTheKindsOfCalls) {
  EXPECT_EQ(to_string(CallKind::allreduce), "allreduce");
  EXPECT_EQ(to_string(CallKind::barrier), "barrier");
  EXPECT_EQ(to_string(CallKind::named_tensors), "named tensors");
  EXPECT_EQ(to_string(CallKind::other), "collective");
}

}  // namespace
}  // namespace trainyard
