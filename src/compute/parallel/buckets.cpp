#include "parallel/buckets.hpp"

#include "base/check.hpp"

namespace trainyard::parallel {

std::vector<Bucket> plan_buckets(std::span<const size_t> bytes, std::span<const int32_t> order,
                                 BucketLimits limits) {
  CHECK(bytes.size() == order.size(), "the order contains each gradient once");
  std::vector<Bucket> buckets;
  for (const int32_t gradient : order) {
    const size_t padded = (bytes[size_t(gradient)] + kGradientAlignment - 1) / kGradientAlignment *
                          kGradientAlignment;
    const size_t limit = buckets.size() <= 1 ? limits.first_bytes : limits.bytes;
    if (buckets.empty() || buckets.back().bytes + padded > limit) buckets.emplace_back();
    Bucket& bucket = buckets.back();
    bucket.gradients.push_back(size_t(gradient));
    bucket.begins.push_back(bucket.bytes);
    bucket.bytes += padded;
  }
  return buckets;
}

}  // namespace trainyard::parallel
