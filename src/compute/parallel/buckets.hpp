// Decides which gradients are reduced together.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trainyard::parallel {

// The first bucket is small, so that the ranks begin to reduce early; later ones are large, since
// each costs a call.
struct BucketLimits {
  size_t first_bytes = 256 << 10;
  size_t bytes = 4 << 20;
};

// A gradient begins at a multiple of this in its bucket: a cache line, for vector instructions.
inline constexpr size_t kGradientAlignment = 64;

struct Bucket {
  std::vector<size_t> gradients;  // indices, in the order of the backward pass
  std::vector<size_t> begins;     // the offset of each gradient, in bytes
  size_t bytes = 0;               // with the gaps between gradients

  bool operator==(const Bucket&) const = default;
};

// Returns buckets that contain every gradient once. bytes[i] is the size of gradient i, and `order`
// lists the gradients as the backward pass makes them. A bucket is full when the next gradient
// would exceed its limit; a larger gradient is alone in one.
std::vector<Bucket> plan_buckets(std::span<const size_t> bytes, std::span<const int32_t> order,
                                 BucketLimits limits);

}  // namespace trainyard::parallel
