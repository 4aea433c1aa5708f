// Decides which images a rank reads in which step.
//
// Where every host holds the same images, an epoch is one random order of all of them: part p of
// step s has the images s * parts + p times the batch size and following. Where each host holds
// some of them, it has an order of its own. An order that ends within a batch begins again, so
// that every batch is full: ranks have equal weights in the sum of gradients.
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
  bool replicated = true;  // every rank holds the same images
  uint64_t own = 0;        // images on this host
  uint64_t all = 0;        // different images of all hosts together
  int rank = 0, ranks = 1;
};

// A host's images, in the form in which hosts compare them.
struct HostImages {
  uint64_t count = 0;
  uint64_t digest = 0;
};
std::string encode(const HostImages& images);
// `lists` has the encoded images of each rank, and `hosts` their names.
Result<Shares> decode_shares(const std::vector<std::string>& lists, int rank,
                             const std::vector<std::string>& hosts);

// Returns the steps of an epoch in which `parts` parts of all ranks read each image about once.
int64_t steps_of_epoch(const Shares& shares, int64_t batch_size, int64_t parts);

class EpochOrder {
 public:
  EpochOrder(const Shares& shares, uint64_t seed, int64_t epoch);
  // part: among the parts of this rank; parts: of each rank.
  std::vector<uint32_t> batch(int64_t step, int64_t part, int64_t parts, int64_t batch_size) const;

 private:
  const Shares shares_;
  std::vector<uint32_t> images_;
};

// Returns the images that this rank scores, so that each is scored once.
std::vector<uint32_t> scored_images(const Shares& shares);

// Combines numbers into a seed: the random numbers of an image in an epoch.
uint64_t seed_of(uint64_t seed, uint64_t epoch, uint64_t image);

}  // namespace trainyard::algorithms
