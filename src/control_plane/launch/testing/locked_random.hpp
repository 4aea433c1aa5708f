// LockedRandom is a SeededRandom for several threads, for tests of launchers with threads.
//
// Threads: callable from anywhere. Errors: none.
#pragma once

#include <cstddef>
#include <span>

#include "base/random.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::launch {

class LockedRandom final : public Random {
 public:
  void fill(std::span<std::byte> bytes) override {
    const MutexLock lock(mutex_);
    random_.fill(bytes);
  }

 private:
  Mutex mutex_;
  SeededRandom random_ GUARDED_BY(mutex_){1};
};

}  // namespace trainyard::launch
