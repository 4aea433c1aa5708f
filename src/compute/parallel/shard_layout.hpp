// Decides which rank holds which part of each parameter.
//
// A bucket (buckets.hpp) is cut into one shard for each rank, all of equal size: rank r holds shard
// r of every bucket. A shard contains parts of one or more parameters, and a parameter that is
// larger than a shard has parts on several ranks.
//
// Threads: pure functions. Errors: none. Units: elements of f32, unless the name has `bytes`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel/buckets.hpp"

namespace trainyard::parallel {

// A ShardPart is consecutive elements of one parameter, in its flattened order.
struct ShardPart {
  size_t parameter = 0;  // index
  size_t begin = 0;      // where the part begins in the parameter
  size_t count = 0;      // at least 1
  size_t position = 0;   // where the part begins in the shard

  bool operator==(const ShardPart&) const = default;
};

// Plans buckets as plan_buckets does, and pads each bucket so that all ranks have shards of equal
// size, which is a multiple of kGradientAlignment.
std::vector<Bucket> plan_sharded_buckets(std::span<const size_t> bytes,
                                         std::span<const int32_t> order, BucketLimits limits,
                                         int ranks);

// Returns the parts in the shard of a rank, by position. bytes[i] is the size of parameter i.
// Requires: a bucket of plan_sharded_buckets for the same number of ranks.
std::vector<ShardPart> parts_of_shard(const Bucket& bucket, std::span<const size_t> bytes, int rank,
                                      int ranks);

}  // namespace trainyard::parallel
