// Computes score and attribution of a random cut tree by their definition, from sets of points
// instead of stored boxes and masses, and checks a tree's invariants.
//
// Threads: plain values. Errors: failed expectations of the calling test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "forest/trees/cut_tree.hpp"

namespace trainyard::forest::testing {

using Point = std::vector<float>;
using Multiset = std::map<Point, uint32_t>;  // point -> count

inline std::vector<Point> points_below(const CutTree& tree, CutTree::Ref at,
                                       const PointStore& points) {
  if (CutTree::is_leaf(at)) {
    const auto point = points.point(tree.leaf(at).slot);
    return std::vector<Point>(tree.leaf(at).mass, Point(point.begin(), point.end()));
  }
  auto all = points_below(tree, tree.node(at).left, points);
  const auto right = points_below(tree, tree.node(at).right, points);
  all.insert(all.end(), right.begin(), right.end());
  return all;
}

struct Sides {
  double separation = 0;       // the probability that a cut separates the point from the others
  std::vector<double> shares;  // by dimension; their sum is `separation`
};

inline Sides separation(const std::vector<Point>& others, const Point& point) {
  Sides sides;
  double whole = 0;
  for (size_t i = 0; i < point.size(); ++i) {
    double low = others[0][i], high = low;
    for (const Point& each : others) {
      low = std::min<double>(low, each[i]);
      high = std::max<double>(high, each[i]);
    }
    const double grown = std::max<double>(high, point[i]) - std::min<double>(low, point[i]);
    sides.shares.push_back(grown - (high - low));
    whole += grown;
  }
  for (double& share : sides.shares) {
    share = whole > 0 ? share / whole : 0;
    sides.separation += share;
  }
  return sides;
}

inline double reference_score(const CutTree& tree, CutTree::Ref at, const Point& point,
                              const PointStore& points, int depth) {
  const auto below = points_below(tree, at, points);
  const double unseen = 1.0 / (depth + 1);
  if (CutTree::is_leaf(at)) {
    if (below[0] != point) return unseen;
    const auto mass = double(below.size()), all = double(tree.mass());
    return (1 - mass / (2 * all)) / (depth + std::log2(mass + 1));
  }
  const auto& node = tree.node(at);
  const auto next = point[node.dimension] <= node.cut ? node.left : node.right;
  const double cut = separation(below, point).separation;
  return cut * unseen + (1 - cut) * reference_score(tree, next, point, points, depth + 1);
}

inline double reference_score(const CutTree& tree, const Point& point, const PointStore& points) {
  if (tree.root() == CutTree::kNone) return 0;
  return reference_score(tree, tree.root(), point, points, 0) * std::log2(tree.mass() + 1.0);
}

// Returns the contribution of each dimension to the score of a point that is not in the tree.
inline std::vector<double> reference_attribution(const CutTree& tree, CutTree::Ref at,
                                                 const Point& point, const PointStore& points,
                                                 int depth) {
  const auto sides = separation(points_below(tree, at, points), point);
  std::vector<double> parts(point.size());
  if (!CutTree::is_leaf(at)) {
    const auto& node = tree.node(at);
    const auto next = point[node.dimension] <= node.cut ? node.left : node.right;
    parts = reference_attribution(tree, next, point, points, depth + 1);
  }
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i] = sides.shares[i] / (depth + 1) + (1 - sides.separation) * parts[i];
  return parts;
}

// Checks boxes, masses, parents and sides of cuts below a node against its points.
inline void expect_consistent(const CutTree& tree, CutTree::Ref at, CutTree::Ref parent,
                              const PointStore& points, Multiset& found) {
  if (CutTree::is_leaf(at)) {
    const auto& leaf = tree.leaf(at);
    ASSERT_EQ(leaf.parent, parent);
    ASSERT_GT(leaf.mass, 0u);
    ASSERT_TRUE(points.is_used(leaf.slot));
    const auto point = points.point(leaf.slot);
    ASSERT_EQ((found[Point(point.begin(), point.end())] += leaf.mass), leaf.mass)
        << "two leaves have equal points";
    return;
  }
  const auto& node = tree.node(at);
  ASSERT_EQ(node.parent, parent);
  const auto below = points_below(tree, at, points);
  ASSERT_EQ(node.mass, below.size());
  double ranges = 0;
  for (size_t i = 0; i < below[0].size(); ++i) {
    const auto [low, high] = std::ranges::minmax(below, {}, [&](const Point& p) { return p[i]; });
    ASSERT_EQ(tree.low(at)[i], low[i]);
    ASSERT_EQ(tree.high(at)[i], high[i]);
    ranges += double(high[i]) - double(low[i]);
  }
  ASSERT_NEAR(node.ranges, ranges, 1e-9 * (1 + ranges));
  for (const Point& each : points_below(tree, node.left, points))
    ASSERT_LE(each[node.dimension], node.cut);
  for (const Point& each : points_below(tree, node.right, points))
    ASSERT_GT(each[node.dimension], node.cut);
  expect_consistent(tree, node.left, at, points, found);
  expect_consistent(tree, node.right, at, points, found);
}

inline void expect_consistent(const CutTree& tree, const PointStore& points,
                              const Multiset& expected) {
  Multiset found;
  if (tree.root() != CutTree::kNone)
    expect_consistent(tree, tree.root(), CutTree::kNone, points, found);
  ASSERT_EQ(found, expected);
  ASSERT_EQ(tree.leaves(), expected.size());
}

}  // namespace trainyard::forest::testing
