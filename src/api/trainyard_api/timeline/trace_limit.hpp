// TraceLimit limits the number of traces that are made concurrently, since each needs some 60 MiB:
// for all callers together, and for each one, so that one caller cannot block the others.
//
// Threads: callable from anywhere. Errors: none. Lifetime: outlives the permits that it returns.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "base/thread_safety.hpp"

namespace trainyard::api::trainyard_api {

inline constexpr size_t kTracesAtOnce = 4;
inline constexpr size_t kTracesOfCaller = 2;

class TraceLimit {
 public:
  // Returns a permit to hold while a trace is made; null if the limit is reached.
  std::shared_ptr<const void> enter(const std::string& caller) {
    const MutexLock lock(mutex_);
    if (callers_.size() >= kTracesAtOnce || callers_.count(caller) >= kTracesOfCaller) return {};
    const auto at = callers_.insert(caller);
    return {&*at, [this, at](const void*) {
              const MutexLock leaving(mutex_);
              callers_.erase(at);
            }};
  }

 private:
  Mutex mutex_;
  std::multiset<std::string> callers_ GUARDED_BY(mutex_);  // one for each trace
};

}  // namespace trainyard::api::trainyard_api
