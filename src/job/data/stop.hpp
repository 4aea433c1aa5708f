// Stops running work: checked between two parts of it, and noticed by waiting threads.
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
  // Waits at most so long; returns whether it was ordered.
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
