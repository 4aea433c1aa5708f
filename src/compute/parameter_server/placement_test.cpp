#include "parameter_server/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace trainyard::parameter_server {
namespace {

std::vector<Table> tables(int count, uint64_t rows, uint32_t width) {
  std::vector<Table> all;
  for (int i = 0; i < count; ++i)
    all.push_back({"table " + std::to_string(i), rows + uint64_t(i), width, {}});
  return all;
}

TEST(Placement, AssignsEveryRowToOneServerAndBalancesTheLoad) {
  const struct {
    int tables;
    uint64_t rows;
    uint32_t width;
    uint32_t servers;
  } rows[] = {{1, 1, 1, 1},          {1, 1, 1, 5},      {100, 64, 32, 3},
              {1, 1'000'000, 64, 4}, {50, 5000, 16, 7}, {3, 10'000'000, 1, 16},
              {2, 3, 1'000'000, 2},  {1000, 1, 10, 8},  {4, 300'000, 3, 32}};
  for (const auto& row : rows) {
    const auto placement = Placement::make(tables(row.tables, row.rows, row.width), row.servers);
    ASSERT_TRUE(placement) << placement.error().message;
    uint64_t total = 0;
    uint64_t largest = 0;
    for (uint32_t table = 0; table < uint32_t(row.tables); ++table) {
      uint64_t next = 0;
      for (const Slice& slice : placement->of_table(table)) {
        EXPECT_EQ(slice.begin, next);
        EXPECT_LT(slice.begin, slice.end);
        EXPECT_LT(slice.server, row.servers);
        const uint64_t numbers = (slice.end - slice.begin) * row.width;
        EXPECT_TRUE(numbers <= kSliceNumbersMax || slice.end - slice.begin == 1);
        EXPECT_EQ(placement->slice_of(table, slice.begin), slice);
        EXPECT_EQ(placement->slice_of(table, slice.end - 1), slice);
        largest = std::max(largest, numbers);
        total += numbers;
        next = slice.end;
      }
      EXPECT_EQ(next, placement->tables()[table].rows);
    }
    for (uint32_t server = 0; server < row.servers; ++server) {
      EXPECT_LE(double(placement->numbers_of(server)),
                kLoadMax * double(total) / row.servers + double(largest) + 1)
          << row.tables << " tables, server " << server << " of " << row.servers;
    }
  }
}

TEST(Placement, DependsOnlyOnTheTablesAndMovesFewSlicesForOneMoreServer) {
  const auto all = tables(500, 200, 16);
  for (const uint32_t servers : {2, 4, 9}) {
    const auto before = Placement::make(all, servers);
    EXPECT_EQ(before->slices(), Placement::make(all, servers)->slices());
    EXPECT_EQ(before->digest(), Placement::make(all, servers)->digest());
    const auto after = Placement::make(all, servers + 1);
    EXPECT_NE(before->digest(), after->digest());
    size_t moved = 0;
    for (size_t i = 0; i < before->slices().size(); ++i)
      moved += before->slices()[i].server != after->slices()[i].server ? 1 : 0;
    // An even share must move; bounded loads move somewhat more.
    EXPECT_LT(double(moved), 2.5 * double(all.size()) / (servers + 1)) << servers;
  }
}

TEST(Placement, RejectsInvalidTables) {
  EXPECT_EQ(Placement::make({{"a", 1, 1, {}}, {"a", 2, 1, {}}}, 1).error().kind, Kind::invalid);
  EXPECT_EQ(Placement::make({{"a", 0, 1, {}}}, 1).error().kind, Kind::invalid);
  EXPECT_EQ(Placement::make({{"a", 1, 0, {}}}, 1).error().kind, Kind::invalid);
  EXPECT_EQ(Placement::make({{"a", ~uint64_t{0}, 4, {}}}, 1).error().kind, Kind::invalid);
  EXPECT_TRUE(Placement::make({}, 3));
}

TEST(Update, AppliesItsRule) {
  const struct {
    Rule::Kind kind;
    float once, twice;  // the value, from 1, after gradients of 2
  } rows[] = {{Rule::Kind::sum, 3, 5},
              {Rule::Kind::sgd, 0, -1},
              {Rule::Kind::momentum, 0, -1.5f},
              {Rule::Kind::adagrad, 0.5f, 0.5f - 1 / std::sqrt(8.0f)}};
  for (const auto& row : rows) {
    const Rule rule{row.kind, 0.5f, 0.5f};
    std::vector<float> value = {1};
    std::vector<float> state(has_state(row.kind) ? 1 : 0);
    const std::vector<float> gradient = {2};
    update(rule, value, state, gradient);
    EXPECT_FLOAT_EQ(value[0], row.once);
    update(rule, value, state, gradient);
    EXPECT_FLOAT_EQ(value[0], row.twice);
  }
}

}  // namespace
}  // namespace trainyard::parameter_server
