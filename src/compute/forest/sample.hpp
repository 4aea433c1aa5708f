// A Sampler draws the sample of each tree from the rows of one host. gather_sample() combines the
// samples of all hosts.
//
// The sample of a tree consists of the rows with the smallest keys (trees/keys.hpp). So the order
// of rows and their distribution over hosts do not matter: any number of hosts draws the same
// sample, bit for bit. Each host sends its smallest keys of each tree (24 bytes per key) to all
// others, and sends rank 0 each of its rows that is in a sample, once.
//
// Threads: confined to one. Errors: exhausted, if the rows need more than `memory_max`; those of
// the group.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "forest/trees/forest.hpp"

namespace trainyard::forest {

// A row with its key in a tree. Candidates are ordered by key, like samples.
struct Candidate {
  uint64_t key = 0;
  RowId row;
  auto operator<=>(const Candidate&) const = default;
};

class Sampler {
 public:
  // `memory_max` is in bytes; 0: unlimited.
  explicit Sampler(const ForestOptions& options, uint64_t memory_max = 0);

  // Adds a row. Requires: no two rows have the same id.
  Result<void> offer(RowId row, std::span<const float> point);
  uint64_t rows() const { return rows_; }

  // Returns the sample of a tree so far, ordered by key.
  std::vector<Candidate> candidates(size_t tree) const;
  // Returns the slots of the first `count` candidates of a tree.
  std::vector<uint32_t> slots(size_t tree, size_t count) const;
  const PointStore& points() const { return points_; }
  const ForestOptions& options() const { return options_; }

 private:
  struct Entry {
    Candidate candidate;
    uint32_t slot = 0;
  };
  static bool has_smaller_key(const Entry& a, const Entry& b) { return a.candidate < b.candidate; }

  ForestOptions options_;
  uint64_t memory_max_;
  PointStore points_;
  std::vector<std::vector<Entry>> trees_;  // heaps with the greatest key in front
  std::vector<uint64_t> salts_;
  std::vector<uint64_t> key_limits_;  // by tree: greater keys are in no sample
  uint64_t rows_ = 0;
};

// The combined sample of all hosts, for Forest::from_sample.
struct GatheredSample {
  std::vector<float> points;
  std::vector<std::vector<Sampled>> trees;
  uint64_t rows = 0;
};

// Combines the samples of all hosts. All ranks call it; rank 0 gets the sample.
Result<std::optional<GatheredSample>> gather_sample(const Sampler& own, collectives::Group& group);

}  // namespace trainyard::forest
