// Compares random insertions and removals with a multiset, and scores with their definition.
#include "forest/trees/cut_tree.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.hpp"
#include "forest/testing/reference.hpp"

namespace trainyard::forest {
namespace {

using testing::expect_consistent;
using testing::Multiset;
using testing::Point;

// A tree and its points, as in Forest.
struct Planted {
  PointStore points;
  CutTree tree;
  Multiset expected;

  Planted(size_t dimensions, uint64_t seed) : points(dimensions), tree(dimensions, seed) {}
  void insert(const Point& point) {
    const uint32_t slot = points.add(point);
    if (tree.insert(slot, points)) points.keep(slot);
    points.release(slot);
    ++expected[point];
  }
  void remove(const Point& point) {
    if (const auto slot = tree.remove(point, points)) points.release(*slot);
    if (--expected[point] == 0) expected.erase(point);
  }
};

// Returns a random point. With `grid` 0 it has any values, else one of a few values, so
// that points are often equal.
Point random_point(SeededRandom& random, size_t dimensions, uint64_t grid) {
  Point point(dimensions);
  for (float& value : point)
    value = grid > 0 ? float(random.below(grid)) : float(double(random.next()) * 0x1p-60 - 8);
  return point;
}

struct TreeCase {
  size_t dimensions;
  uint64_t grid;
};

TEST(CutTree, StaysConsistentThroughInsertionsAndRemovals) {
  for (const TreeCase& each : {TreeCase{1, 0}, {1, 4}, {2, 0}, {3, 3}, {9, 0}, {17, 2}}) {
    SeededRandom random(each.dimensions * 31 + each.grid);
    Planted planted(each.dimensions, 7);
    std::vector<Point> present;
    for (int step = 0; step < 400; ++step) {
      const bool grows = present.size() < 2 || random.below(step < 200 ? 4 : 2) > 0;
      if (grows && present.size() < 60) {
        present.push_back(random_point(random, each.dimensions, each.grid));
        planted.insert(present.back());
      } else {
        std::swap(present[random.below(present.size())], present.back());
        planted.remove(present.back());
        present.pop_back();
      }
      ASSERT_NO_FATAL_FAILURE(expect_consistent(planted.tree, planted.points, planted.expected));
      ASSERT_EQ(planted.tree.mass(), present.size());
      ASSERT_EQ(planted.points.size(), planted.expected.size()) << "points are released";
    }
    while (!present.empty()) {
      planted.remove(present.back());
      present.pop_back();
      ASSERT_NO_FATAL_FAILURE(expect_consistent(planted.tree, planted.points, planted.expected));
    }
    EXPECT_EQ(planted.points.size(), 0u);
  }
}

TEST(CutTree, ScoresEqualTheDefinition) {
  for (const TreeCase& each : {TreeCase{1, 0}, {2, 3}, {5, 0}, {8, 2}, {11, 0}}) {
    SeededRandom random(each.dimensions);
    Planted planted(each.dimensions, 3);
    EXPECT_EQ(planted.tree.score(random_point(random, each.dimensions, 0).data(), planted.points),
              0);
    for (int i = 0; i < 50; ++i) {
      planted.insert(random_point(random, each.dimensions, each.grid));
      for (int query = 0; query < 20; ++query) {
        Point point = random_point(random, each.dimensions, query % 2 ? each.grid : 0);
        if (query % 5 == 0) point[0] *= 40;
        EXPECT_NEAR(planted.tree.score(point.data(), planted.points),
                    testing::reference_score(planted.tree, point, planted.points), 1e-12);
      }
    }
  }
}

TEST(CutTree, AttributionAddsUpToTheScore) {
  SeededRandom random(5);
  Planted planted(4, 3);
  std::vector<Point> present;
  for (int i = 0; i < 60; ++i) {
    present.push_back(random_point(random, 4, i % 2 ? 3 : 0));
    planted.insert(present.back());
    for (int query = 0; query < 20; ++query) {
      const bool is_present = query % 4 == 0;
      const Point point =
          is_present ? present[random.below(present.size())] : random_point(random, 4, 0);
      std::vector<double> parts(4);
      planted.tree.attribute(point.data(), planted.points, parts);
      const double score = planted.tree.score(point.data(), planted.points);
      EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), score, 1e-12);
      for (const double part : parts) EXPECT_GE(part, 0);
      if (is_present) continue;
      const auto expected = testing::reference_attribution(planted.tree, planted.tree.root(), point,
                                                           planted.points, 0);
      for (size_t d = 0; d < 4; ++d)
        EXPECT_NEAR(parts[d], expected[d] * std::log2(planted.tree.mass() + 1.0), 1e-12);
    }
  }
}

TEST(CutTree, AttributesAnOutlierToItsDimension) {
  SeededRandom random(1);
  Planted planted(3, 9);
  for (int i = 0; i < 100; ++i) planted.insert(random_point(random, 3, 0));
  std::vector<double> parts(3);
  planted.tree.attribute(Point{0, 500, 0}.data(), planted.points, parts);
  EXPECT_GT(parts[1], 20 * (parts[0] + parts[2]));
}

// The first cut of a tree of three points on a line, 0, 1 and 4, separates 0 with the probability
// 1/4, whatever the order of insertions, and also after a removal (Guha et al., Theorem 3).
TEST(CutTree, CutsAreDistributedByRangesInAnyOrder) {
  const std::vector<std::vector<float>> orders = {{0, 1, 4}, {4, 1, 0},    {1, 0, 4},
                                                  {0, 4, 1}, {9, 0, 1, 4}, {0, -5, 4, 1}};
  for (const auto& order : orders) {
    int separated = 0;
    const int trees = 20'000;
    for (int seed = 0; seed < trees; ++seed) {
      Planted planted(1, mix(uint64_t(seed) + 1));
      for (const float value : order) planted.insert({value});
      for (const float value : order)
        if (value == 9 || value == -5) planted.remove({value});
      const auto& root = planted.tree.node(planted.tree.root());
      separated += root.cut < 1;
    }
    // The seeds are fixed, so the count is, too; 5 standard deviations are 306.
    EXPECT_NEAR(separated, trees / 4, 306);
  }
}

TEST(CutTree, SeparatesNeighbouringAndExtremeFloats) {
  const float next = std::nextafter(1.0f, 2.0f);
  const float largest = std::numeric_limits<float>::max();
  const std::vector<std::pair<float, float>> pairs = {
      {1, next}, {-largest, largest}, {0, std::numeric_limits<float>::denorm_min()}, {-next, -1}};
  for (const auto& [low, high] : pairs) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      Planted planted(2, seed);
      planted.insert({low, 0});
      planted.insert({high, 0});
      planted.insert({low, 0});
      ASSERT_NO_FATAL_FAILURE(expect_consistent(planted.tree, planted.points, planted.expected));
      const double score = planted.tree.score(Point{high, 1}.data(), planted.points);
      EXPECT_TRUE(std::isfinite(score));
    }
  }
}

TEST(CutTree, ZerosOfBothSignsAreEqual) {
  Planted planted(1, 1);
  planted.insert({0.0f});
  planted.insert({-0.0f});
  EXPECT_EQ(planted.tree.leaves(), 1u);
  EXPECT_EQ(planted.tree.mass(), 2u);
}

}  // namespace
}  // namespace trainyard::forest
