// A Sampler draws the sample of each tree from the rows of one host; gather_sample() draws it from
// those of all hosts.
//
// The sample of a tree is the rows with the smallest keys (trees/keys.hpp), so the order of rows
// and their distribution over hosts do not matter: one host and any number of hosts draw the same
// sample, bit for bit. Each host sends its smallest keys per tree (24 bytes each) to all others,
// and to rank 0 the rows that are in a sample, once each.
//
// Threads: confined to one. Errors: exhausted, when the rows need more than `memory_max`; those of
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

// A row with its key in a tree, in the order of samples.
struct Candidate {
  uint64_t key = 0;
  RowId row;
  auto operator<=>(const Candidate&) const = default;
};

class Sampler {
 public:
  // Memory in bytes; 0: unlimited.
  explicit Sampler(const ForestOptions& options, uint64_t memory_max = 0);

  // Each row must have another id.
  Result<void> offer(RowId row, std::span<const float> point);
  uint64_t rows() const { return rows_; }

  // The sample of a tree so far, ordered by key.
  std::vector<Candidate> candidates(size_t tree) const;
  // The slots of the first `count` of these, in their order.
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

// The sample of all hosts, for Forest::of_sample.
struct GatheredSample {
  std::vector<float> points;
  std::vector<std::vector<Sampled>> trees;
  uint64_t rows = 0;
};

// All ranks call it; rank 0 gets the sample.
Result<std::optional<GatheredSample>> gather_sample(const Sampler& own, collectives::Group& group);

}  // namespace trainyard::forest
