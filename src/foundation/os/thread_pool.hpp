// ThreadPool runs work on threads that it makes on demand, and which end when they have been idle
// for some time.
//
// Threads: run() from anywhere. Lifetime: the destructor waits for all work, including queued work.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <thread>

#include "base/thread_safety.hpp"
#include "base/time.hpp"

namespace trainyard::os {

class ThreadPool {
 public:
  // Runs at most `threads_max` threads. An idle thread ends after `idle_limit`.
  explicit ThreadPool(size_t threads_max, Duration idle_limit = 10s);
  ThreadPool(const ThreadPool&) = delete;
  ~ThreadPool();

  // Runs `work` on a thread. If threads_max threads are busy, it is queued; the caller limits the
  // length of the queue. Returns false, and drops the work, if there is no thread and none can be
  // made.
  bool run(std::function<void()> work);

 private:
  void serve(std::list<std::thread>::iterator self);

  const size_t threads_max_;
  const Duration idle_limit_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> backlog_ GUARDED_BY(mutex_);
  std::list<std::thread> threads_ GUARDED_BY(mutex_);
  // ended threads, which the next thread that ends or the destructor joins
  std::list<std::thread> ended_ GUARDED_BY(mutex_);
  size_t idle_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace trainyard::os
