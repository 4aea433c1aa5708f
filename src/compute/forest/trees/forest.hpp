// A Forest is a set of random cut trees, each built from a sample of the rows. It scores points,
// and can continue to learn from a stream.
//
//   Forest forest({.dimensions = 2, .trees = 100, .samples_per_tree = 256, .seed = 1});
//   for (const auto& row : rows) forest.update(row);
//   const double score = forest.score(point);   // higher is more anomalous
//
// The sample of each tree is drawn without replacement and independently of the other trees
// (keys.hpp). update() offers a row to all trees. If the row replaces another row in a sample, the
// tree forgets that row. With a time decay of d, a row that is n rows older is exp(-d n) times as
// likely to be in a sample.
//
// A forest depends only on the seed, the rows and their numbers: from_sample() builds the same
// forest, bit for bit, for any number of hosts that drew the sample (sample.hpp).
//
// Threads: confined to one; score() and attribution() from any thread while nothing changes.
// Errors: none; the caller checks that values are finite and within the limits.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "forest/trees/cut_tree.hpp"
#include "forest/trees/keys.hpp"
#include "forest/trees/point_store.hpp"

namespace trainyard::forest {

inline constexpr int64_t kDimensionsMax = 10'000;
inline constexpr int64_t kTreesMax = 1'000;
inline constexpr int64_t kSamplesPerTreeMax = 2'048;

struct ForestOptions {
  size_t dimensions = 1;
  size_t trees = 100;
  size_t samples_per_tree = 256;
  uint64_t seed = 1;
  double time_decay = 0;  // 0 or more
};

// A row in the sample of a tree.
struct Sampled {
  uint64_t key = 0;
  uint32_t point = 0;
  bool operator==(const Sampled&) const = default;
};

class Forest {
 public:
  explicit Forest(const ForestOptions& options);

  // Builds the trees of samples that were drawn before: `points` are rows of `dimensions` values,
  // samples[tree] refers to them, ordered by key. Uses up to `threads` threads.
  static Forest from_sample(const ForestOptions& options, std::span<const float> points,
                            std::vector<std::vector<Sampled>> samples, uint64_t rows_seen,
                            size_t threads);

  // Offers the next row of a stream to all trees.
  void update(std::span<const float> point);

  double score(std::span<const float> point) const;
  // Scores `scores.size()` consecutive points. Gives the same results as score() of each, but
  // faster.
  void score(std::span<const float> points, std::span<double> scores) const;
  // Returns the contribution of each dimension; their sum is the score.
  std::vector<double> attribution(std::span<const float> point) const;

  const ForestOptions& options() const { return options_; }
  uint64_t rows_seen() const { return rows_seen_; }
  const PointStore& points() const { return points_; }
  const CutTree& tree(size_t index) const { return trees_[index]; }
  // Returns the sample of a tree, without an order.
  std::span<const Sampled> sample(size_t tree) const { return samples_[tree]; }

  // For the reader of model files.
  struct Parts {
    PointStore points;
    std::vector<CutTree> trees;
    std::vector<std::vector<Sampled>> samples;
    uint64_t rows_seen = 0;
  };
  static Forest from_parts(const ForestOptions& options, Parts parts);

 private:
  void replace(size_t tree, uint32_t slot, uint64_t key);

  ForestOptions options_;
  PointStore points_;
  std::vector<CutTree> trees_;
  std::vector<std::vector<Sampled>> samples_;  // by tree, a heap with the greatest key in front
  std::vector<uint64_t> salts_;                // by tree
  uint64_t rows_seen_ = 0;
};

// Returns an upper bound of the bytes that a forest of `rows` rows uses.
uint64_t memory_of(const ForestOptions& options, uint64_t rows);

}  // namespace trainyard::forest
