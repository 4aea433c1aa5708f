#include "parallel/shard_layout.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace trainyard::parallel {

std::vector<Bucket> plan_sharded_buckets(std::span<const size_t> bytes,
                                         std::span<const int32_t> order, BucketLimits limits,
                                         int ranks) {
  std::vector<Bucket> buckets = plan_buckets(bytes, order, limits);
  const size_t unit = kGradientAlignment * size_t(ranks);
  for (Bucket& each : buckets) each.bytes = (each.bytes + unit - 1) / unit * unit;
  return buckets;
}

std::vector<ShardPart> parts_of_shard(const Bucket& bucket, std::span<const size_t> bytes, int rank,
                                      int ranks) {
  const size_t shard = bucket.bytes / size_t(ranks);
  CHECK(shard % kGradientAlignment == 0, "a bucket divides into aligned shards");
  const size_t shard_begin = shard * size_t(rank), shard_end = shard_begin + shard;
  std::vector<ShardPart> parts;
  for (size_t i = 0; i < bucket.gradients.size(); ++i) {
    const size_t parameter = bucket.gradients[i];
    const size_t begin = std::max(bucket.begins[i], shard_begin);
    const size_t end = std::min(bucket.begins[i] + bytes[parameter], shard_end);
    if (begin >= end) continue;
    parts.push_back({parameter, (begin - bucket.begins[i]) / sizeof(float),
                     (end - begin) / sizeof(float), (begin - shard_begin) / sizeof(float)});
  }
  return parts;
}

}  // namespace trainyard::parallel
