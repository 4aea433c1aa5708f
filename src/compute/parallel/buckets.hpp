// Decides which gradients are reduced together.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trainyard::parallel {

// The first bucket is small, so that reduction begins early. Later buckets are large, since each
// costs a call.
struct BucketLimits {
  size_t first_bytes = 256 << 10;
  size_t bytes = 4 << 20;
};

// A gradient begins at a multiple of this number of bytes in its bucket: a cache line, for vector
// instructions.
inline constexpr size_t kGradientAlignment = 64;

struct Bucket {
  std::vector<size_t> gradients;  // indices, in the order of the backward pass
  std::vector<size_t> begins;     // the offset of each gradient, in bytes
  size_t bytes = 0;               // including the gaps between gradients

  bool operator==(const Bucket&) const = default;
};

// Returns buckets that contain every gradient once. bytes[i] is the size of gradient i, and `order`
// lists the gradients in the order of the backward pass. A bucket is full if the next gradient
// would exceed its limit; a gradient above the limit has its own bucket.
std::vector<Bucket> plan_buckets(std::span<const size_t> bytes, std::span<const int32_t> order,
                                 BucketLimits limits);

}  // namespace trainyard::parallel
