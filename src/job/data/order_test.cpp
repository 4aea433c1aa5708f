#include "data/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace trainyard::data {
namespace {

TEST(Order, NothingMovesWithoutASeed) {
  EXPECT_EQ(order_of(4, {}, 0), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(order_of(4, {}, 7), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_TRUE(order_of(0, 1, 0).empty());
  EXPECT_EQ(order_of(1, 1, 0), (std::vector<uint32_t>{0}));
}

TEST(Order, EveryEpochIsAnotherPermutation) {
  std::set<std::vector<uint32_t>> seen;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    auto order = order_of(50, 42, epoch);
    EXPECT_EQ(order, order_of(50, 42, epoch)) << "the same on every host";
    EXPECT_TRUE(seen.insert(order).second);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, order_of(50, {}, 0));
  }
  EXPECT_NE(order_of(50, 42, 0), order_of(50, 43, 0));
  EXPECT_NE(order_of(50, -1, 0), order_of(50, 1, 0));
}

// Positions are uniform: 6 items, 6000 epochs, each position about 1000 times.
TEST(Order, IsFair) {
  std::vector<std::vector<int>> counts(6, std::vector<int>(6));
  for (uint64_t epoch = 0; epoch < 6000; ++epoch) {
    const auto order = order_of(6, 7, epoch);
    for (size_t place = 0; place < 6; ++place) ++counts[place][order[place]];
  }
  for (const auto& place : counts)
    for (const int count : place) EXPECT_NEAR(count, 1000, 200);
}

TEST(Order, SharesAreDisjointAndChangeBetweenEpochs) {
  std::set<uint32_t> all, of_first;
  for (uint64_t epoch = 0; epoch < 30; ++epoch) {
    const auto order = order_of(7, 5, epoch);
    all.clear();
    for (uint32_t host = 0; host < 3; ++host) {
      const auto share = share_of(order, host, 3);
      EXPECT_EQ(share.size(), host == 0 ? 3u : 2u);
      all.insert(share.begin(), share.end());
      if (host == 0) of_first.insert(share.begin(), share.end());
    }
    EXPECT_EQ(all.size(), 7u);
  }
  EXPECT_EQ(of_first.size(), 7u);
  EXPECT_TRUE(share_of(order_of(1, {}, 0), 1, 2).empty());
}

}  // namespace
}  // namespace trainyard::data
