#include "operations/rate_limiter.hpp"

#include <algorithm>
#include <iterator>

#include "base/thread_safety.hpp"

namespace trainyard::api {
namespace {

// The maximum of buckets. Full ones are dropped first, which has no effect: a new bucket is full,
// too.
constexpr size_t kBucketsMax = 10'000;

constexpr std::string_view kReads[] = {"BatchGet", "Describe", "Filter", "Get",     "Head",
                                       "List",     "Lookup",   "Search", "Simulate"};

}  // namespace

OperationClass class_of(const shapes::OperationShape& operation) {
  if (operation.service->scope == "s3") return OperationClass::objects;
  const bool reads = std::any_of(std::begin(kReads), std::end(kReads), [&](std::string_view verb) {
    return operation.name.starts_with(verb);
  });
  return reads ? OperationClass::reads : OperationClass::changes;
}

bool RateLimiter::admit(const std::string& principal, OperationClass operations,
                        const RateLimits& limits, std::chrono::nanoseconds now) {
  const double rate = limits.per_second(operations);
  if (rate <= 0) return true;
  const double burst = std::max(1.0, rate * limits.burst_seconds);
  const MutexLock lock(mutex_);
  const std::pair key(principal, operations);
  auto found = buckets_.find(key);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kBucketsMax)
      for (auto each = buckets_.begin(); each != buckets_.end();)
        each = each->second.is_full(now) ? buckets_.erase(each) : std::next(each);
    if (buckets_.size() >= kBucketsMax) buckets_.clear();
    found = buckets_.emplace(key, TokenBucket(rate, burst, now)).first;
  } else {
    found->second.change(rate, burst, now);  // the configuration may have changed
  }
  return found->second.take(now);
}

}  // namespace trainyard::api
