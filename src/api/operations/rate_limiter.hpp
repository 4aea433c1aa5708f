// RateLimiter limits the rate of a principal's requests, by class of operation.
//
// All keys of a user count as one principal, and so do all sessions of a role.
//
// Threads: callable from anywhere. Errors: none.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "base/thread_safety.hpp"
#include "base/token_bucket.hpp"
#include "policy/principal_settings.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

using policy::OperationClass;
using policy::RateLimits;

OperationClass class_of(const shapes::OperationShape& operation);

class RateLimiter {
 public:
  // Counts a request. Returns false if it exceeds the rate and must be rejected. Requires:
  // burst_seconds > 0.
  bool admit(const std::string& principal, OperationClass operations, const RateLimits& limits,
             std::chrono::nanoseconds now);

 private:
  Mutex mutex_;
  std::map<std::pair<std::string, OperationClass>, TokenBucket> buckets_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::api
