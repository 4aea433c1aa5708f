// Decides which images a rank reads in which step.
//
// If all hosts have the same images, an epoch is one random order of all of them: the batch of part
// p in step s starts at position (s * parts + p) * batch_size. If each host has different images,
// each has an order of its own. An order that ends within a batch starts over, so every batch is
// full, and all ranks have equal weights in the sum of gradients.
//
// Threads: pure functions. Errors: invalid, naming a host without images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::algorithms {

inline constexpr uint64_t kImagesMax = uint64_t{1} << 31;  // each host orders all of them in memory

// The images of a channel, as one rank sees them.
struct Shares {
  bool replicated = true;  // every host has the same images
  uint64_t own = 0;        // images on this host
  uint64_t all = 0;        // distinct images on all hosts together
  int rank = 0, ranks = 1;
};

// Summary of a host's images, which hosts exchange to compare them.
struct HostImages {
  uint64_t count = 0;
  uint64_t digest = 0;
};
std::string encode(const HostImages& images);
// Decodes the images of all hosts, and computes this rank's shares. `lists` are the encoded
// HostImages by rank, and `hosts` the names of the hosts by rank.
Result<Shares> decode_shares(const std::vector<std::string>& lists, int rank,
                             const std::vector<std::string>& hosts);

// Returns the number of steps after which all ranks, each with `parts` parts, have read each image
// about once.
int64_t steps_of_epoch(const Shares& shares, int64_t batch_size, int64_t parts);

class EpochOrder {
 public:
  EpochOrder(const Shares& shares, uint64_t seed, int64_t epoch);
  // Returns the images of one batch. `part` counts the parts of this rank, from 0; each rank has
  // `parts`.
  std::vector<uint32_t> batch(int64_t step, int64_t part, int64_t parts, int64_t batch_size) const;

 private:
  const Shares shares_;
  std::vector<uint32_t> images_;
};

// Returns the images that this rank scores. Each image is scored on one rank.
std::vector<uint32_t> scored_images(const Shares& shares);

// Returns the seed for the random choices of an image in an epoch.
uint64_t seed_of(uint64_t seed, uint64_t epoch, uint64_t image);

}  // namespace trainyard::algorithms
