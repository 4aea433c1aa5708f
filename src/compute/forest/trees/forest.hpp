// A Forest is the random cut trees of a sample of rows each: it scores points, and can
// continue to learn from a stream.
//
//   Forest forest({.dimensions = 2, .trees = 100, .samples_per_tree = 256, .seed = 1});
//   for (const auto& row : rows) forest.update(row);
//   const double score = forest.score(point);   // higher is more anomalous
//
// The sample of each tree is drawn without replacement and independently of the other trees
// (keys.hpp). update() offers a row to all of them: where it replaces another row, the tree forgets
// that one. With a time decay of d, a row that is n rows older is exp(-d n) times as likely to be
// in a sample.
//
// A forest depends on seed, rows and their numbers only: of_sample() of the rows that one host or
// many have chosen (sample.hpp) is one and the same, bit for bit.
//
// Threads: confined to one; scores from anywhere while nothing changes. Errors: none; the caller
// checks values (finite) and limits.
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
  static Forest of_sample(const ForestOptions& options, std::span<const float> points,
                          std::vector<std::vector<Sampled>> samples, uint64_t rows_seen,
                          size_t threads);

  // Offers the next row of a stream to all trees.
  void update(std::span<const float> point);

  double score(std::span<const float> point) const;
  // Scores `scores.size()` points that lie one after the other: as score() of each, and faster.
  void score(std::span<const float> points, std::span<double> scores) const;
  // Returns the part of each dimension; their sum is the score.
  std::vector<double> attribution(std::span<const float> point) const;

  const ForestOptions& options() const { return options_; }
  uint64_t rows_seen() const { return rows_seen_; }
  const PointStore& points() const { return points_; }
  const CutTree& tree(size_t index) const { return trees_[index]; }
  // In no order.
  std::span<const Sampled> sample(size_t tree) const { return samples_[tree]; }

  // For the reader of model files.
  struct Parts {
    PointStore points;
    std::vector<CutTree> trees;
    std::vector<std::vector<Sampled>> samples;
    uint64_t rows_seen = 0;
  };
  static Forest of_parts(const ForestOptions& options, Parts parts);

 private:
  void replace(size_t tree, uint32_t slot, uint64_t key);

  ForestOptions options_;
  PointStore points_;
  std::vector<CutTree> trees_;
  std::vector<std::vector<Sampled>> samples_;  // by tree, a heap with the greatest key in front
  std::vector<uint64_t> salts_;                // by tree
  uint64_t rows_seen_ = 0;
};

// Returns an upper limit of the bytes that a forest of `rows` rows uses.
uint64_t memory_of(const ForestOptions& options, uint64_t rows);

}  // namespace trainyard::forest
