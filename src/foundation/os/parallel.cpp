#include "os/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/thread_safety.hpp"

namespace trainyard::os {

Result<void> for_each_in_parallel(size_t count, size_t threads_max,
                                  const std::function<Result<void>(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  Mutex mutex;
  Result<void> first;  // written with the mutex held
  const auto loop = [&] {
    for (size_t i; !failed && (i = next++) < count;) {
      auto done = work(i);
      if (done) continue;
      const MutexLock lock(mutex);
      if (!failed) first = std::move(done);
      failed = true;
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min(threads_max, count); ++i) helpers.emplace_back(loop);
  loop();
  for (auto& helper : helpers) helper.join();
  return first;
}

}  // namespace trainyard::os
