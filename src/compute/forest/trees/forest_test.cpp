// Tests samples, streams, and model files of forests.
#include "forest/trees/forest.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/fnv.hpp"
#include "base/random.hpp"
#include "forest/model_file.hpp"
#include "forest/testing/reference.hpp"

namespace trainyard::forest {
namespace {

using testing::Multiset;
using testing::Point;

std::vector<Point> random_rows(size_t count, size_t dimensions, uint64_t seed) {
  SeededRandom random(seed);
  std::vector<Point> rows(count, Point(dimensions));
  for (Point& row : rows)
    for (float& value : row) value = float(random.below(1000)) / 8;
  return rows;
}

Forest streamed(const ForestOptions& options, const std::vector<Point>& rows) {
  Forest forest(options);
  for (const Point& row : rows) forest.update(row);
  return forest;
}

void expect_samples_in_trees(const Forest& forest) {
  std::set<uint32_t> used;
  for (size_t tree = 0; tree < forest.options().trees; ++tree) {
    Multiset expected;
    for (const Sampled& each : forest.sample(tree)) {
      const auto point = forest.points().point(each.point);
      ++expected[Point(point.begin(), point.end())];
      used.insert(each.point);
    }
    ASSERT_NO_FATAL_FAILURE(
        testing::expect_consistent(forest.tree(tree), forest.points(), expected));
  }
  ASSERT_GE(forest.points().size(), used.size());
}

const ForestOptions kSmall = {.dimensions = 3, .trees = 7, .samples_per_tree = 16, .seed = 5};

TEST(Forest, EachTreeHasTheRowsWithTheSmallestKeys) {
  const auto rows = random_rows(300, 3, 1);
  const Forest forest = streamed(kSmall, rows);
  ASSERT_NO_FATAL_FAILURE(expect_samples_in_trees(forest));
  EXPECT_EQ(forest.rows_seen(), 300u);
  for (size_t tree = 0; tree < kSmall.trees; ++tree) {
    std::vector<uint64_t> keys;
    for (uint64_t row = 0; row < rows.size(); ++row)
      keys.push_back(
          key_of(hash_of({fnv1a("stream"), row}, kSmall.seed), salt_of(tree, kSmall.seed)));
    std::ranges::sort(keys);
    keys.resize(16);
    std::vector<uint64_t> found;
    for (const Sampled& each : forest.sample(tree)) found.push_back(each.key);
    std::ranges::sort(found);
    EXPECT_EQ(found, keys);
  }
}

// 40 trees x 5 of 100 rows: each row is expected in 2 samples, whatever its position.
TEST(Forest, SamplesRowsUniformly) {
  std::vector<Point> rows;
  for (int i = 0; i < 100; ++i) rows.push_back({float(i)});
  std::vector<int> counts(100);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Forest forest = streamed({1, 40, 5, seed}, rows);
    for (size_t tree = 0; tree < 40; ++tree)
      for (const Sampled& each : forest.sample(tree))
        ++counts[size_t(forest.points().at(each.point)[0])];
  }
  // Expected 200 of each with a standard deviation of 14; the seeds are fixed.
  for (const int count : counts) EXPECT_NEAR(count, 200, 70);
  double first_half = 0;
  for (int i = 0; i < 50; ++i) first_half += counts[size_t(i)];
  EXPECT_NEAR(first_half, 10'000, 350);
}

TEST(Forest, PrefersRecentRowsWithATimeDecay) {
  std::vector<Point> rows;
  for (int i = 0; i < 1000; ++i) rows.push_back({float(i)});
  const auto mean_row = [&](double decay) {
    const Forest forest = streamed({1, 50, 20, 3, decay}, rows);
    double sum = 0;
    for (size_t tree = 0; tree < 50; ++tree)
      for (const Sampled& each : forest.sample(tree)) sum += forest.points().at(each.point)[0];
    return sum / 1000;
  };
  EXPECT_NEAR(mean_row(0), 500, 50);
  // The weights exp(-0.01 n) have the mean 900; the greedy choice without replacement is near it.
  EXPECT_NEAR(mean_row(0.01), 890, 25);
  EXPECT_GT(mean_row(0.1), 970);
}

TEST(Forest, ScoresABatchLikeSinglePoints) {
  const Forest forest = streamed(kSmall, random_rows(200, 3, 2));
  const auto queries = random_rows(150, 3, 3);
  std::vector<float> flat;
  for (const Point& each : queries) flat.insert(flat.end(), each.begin(), each.end());
  std::vector<double> scores(queries.size());
  forest.score(flat, scores);
  for (size_t i = 0; i < queries.size(); ++i) {
    EXPECT_EQ(scores[i], forest.score(queries[i]));
    double sum = 0;
    for (size_t tree = 0; tree < kSmall.trees; ++tree)
      sum += testing::reference_score(forest.tree(tree), queries[i], forest.points());
    EXPECT_NEAR(scores[i], sum / double(kSmall.trees), 1e-12);
    double parts = 0;
    for (const double part : forest.attribution(queries[i])) parts += part;
    EXPECT_NEAR(parts, scores[i], 1e-12);
  }
}

TEST(Forest, OutliersHaveTheHighestScores) {
  Forest forest({.dimensions = 2, .trees = 50, .samples_per_tree = 128, .seed = 1});
  for (const Point& row : random_rows(1000, 2, 4)) forest.update(row);
  double highest = 0;
  for (const Point& row : random_rows(200, 2, 5)) highest = std::max(highest, forest.score(row));
  EXPECT_GT(forest.score(Point{400, 60}), highest);
  EXPECT_GT(forest.score(Point{-300, 500}), highest);
}

TEST(ForestModel, RoundTripsAndContinues) {
  const auto rows = random_rows(300, 3, 6);
  Forest forest = streamed(kSmall, rows);
  const std::string bytes = encode_forest(forest);
  auto read = decode_forest(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(encode_forest(*read), bytes);
  ASSERT_NO_FATAL_FAILURE(expect_samples_in_trees(*read));
  for (const Point& row : random_rows(300, 3, 7)) {
    ASSERT_EQ(read->score(row), forest.score(row));
    forest.update(row);
    read->update(row);
  }
  EXPECT_EQ(encode_forest(*read), encode_forest(forest));
  ASSERT_NO_FATAL_FAILURE(expect_samples_in_trees(*read));
}

TEST(ForestModel, ReadsAnEmptyForest) {
  const auto read = decode_forest(encode_forest(Forest(kSmall)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->score(Point{1, 2, 3}), 0);
}

TEST(ForestModel, ReportsDamage) {
  const std::string bytes = encode_forest(streamed(kSmall, random_rows(40, 3, 8)));
  for (size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_FALSE(decode_forest(bytes.substr(0, size)));
  for (size_t at = 0; at < bytes.size(); at += 5) {
    std::string damaged = bytes;
    damaged[at] = char(damaged[at] ^ 0x10);
    EXPECT_FALSE(decode_forest(damaged)) << at;
  }
  EXPECT_EQ(decode_forest(bytes, 1000).error().kind, Kind::exhausted);
}

// docs/formats/random-cut-forest.md: the format changes only with its version.
TEST(ForestModel, HasTheDocumentedBytes) {
  Forest forest({.dimensions = 1, .trees = 1, .samples_per_tree = 2, .seed = 3});
  forest.update(Point{1});
  forest.update(Point{2});
  const std::string bytes = encode_forest(forest);
  EXPECT_EQ(bytes.size(), 8 + 4 * 4 + 3 * 8 + 4 + 2 * 4 + 8 + 4 + 2 * 12 + 4 + 3 * 12 + 8u);
  EXPECT_EQ(fnv1a(bytes), 192885605512442092u);
}

}  // namespace
}  // namespace trainyard::forest
