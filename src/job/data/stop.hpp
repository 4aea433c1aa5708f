// Stop is a flag that ends running work: the work checks it between two parts, and waiting threads
// wake up.
//
// Threads: callable from anywhere.
#pragma once

#include <atomic>

#include "base/thread_safety.hpp"
#include "base/time.hpp"

namespace trainyard::data {

class Stop {
 public:
  void order() {
    {
      const MutexLock lock(mutex_);
      ordered_ = true;
    }
    changed_.notify_all();
  }
  bool ordered() const { return ordered_; }
  // Waits for order(), at most this long. Returns true if it was called.
  bool wait(Duration at_most) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, at_most, [&]() REQUIRES(mutex_) { return ordered_.load(); });
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::atomic<bool> ordered_ = false;  // written under mutex_
};

}  // namespace trainyard::data
