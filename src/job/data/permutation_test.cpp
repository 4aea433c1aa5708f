#include "data/permutation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace trainyard::data {
namespace {

TEST(Permutation, KeepsTheListedOrderWithoutASeed) {
  EXPECT_EQ(permutation_of(4, {}, 0), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(permutation_of(4, {}, 7), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_TRUE(permutation_of(0, 1, 0).empty());
  EXPECT_EQ(permutation_of(1, 1, 0), (std::vector<uint32_t>{0}));
}

TEST(Permutation, DiffersInEveryEpoch) {
  std::set<std::vector<uint32_t>> seen;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    auto order = permutation_of(50, 42, epoch);
    EXPECT_EQ(order, permutation_of(50, 42, epoch)) << "the same on every host";
    EXPECT_TRUE(seen.insert(order).second);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, permutation_of(50, {}, 0));
  }
  EXPECT_NE(permutation_of(50, 42, 0), permutation_of(50, 43, 0));
  EXPECT_NE(permutation_of(50, -1, 0), permutation_of(50, 1, 0));
}

// Positions are uniform: 6 items, 6000 epochs, each position about 1000 times.
TEST(Permutation, EachItemIsEquallyLikelyAtEachPosition) {
  std::vector<std::vector<int>> counts(6, std::vector<int>(6));
  for (uint64_t epoch = 0; epoch < 6000; ++epoch) {
    const auto order = permutation_of(6, 7, epoch);
    for (size_t position = 0; position < 6; ++position) ++counts[position][order[position]];
  }
  for (const auto& position : counts)
    for (const int count : position) EXPECT_NEAR(count, 1000, 200);
}

TEST(Permutation, SharesAreDisjointAndChangeBetweenEpochs) {
  std::set<uint32_t> all, of_first;
  for (uint64_t epoch = 0; epoch < 30; ++epoch) {
    const auto order = permutation_of(7, 5, epoch);
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
  EXPECT_TRUE(share_of(permutation_of(1, {}, 0), 1, 2).empty());
}

}  // namespace
}  // namespace trainyard::data
