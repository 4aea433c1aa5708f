// Runs work on threads that are made on demand and end when they have been idle for a while.
//
// Threads: run() from anywhere. Lifetime: the destructor waits for all work given, queued work
// included.
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
  // `threads_max` at once; an idle thread ends after `idle_limit`.
  explicit ThreadPool(size_t threads_max, Duration idle_limit = 10s);
  ThreadPool(const ThreadPool&) = delete;
  ~ThreadPool();

  // Work beyond threads_max waits, in order. The caller limits the number of waiting items. False
  // when there is no thread and none could be made: the work is dropped.
  bool run(std::function<void()> work);

 private:
  void serve(std::list<std::thread>::iterator self);

  const size_t threads_max_;
  const Duration idle_limit_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> backlog_ GUARDED_BY(mutex_);
  std::list<std::thread> threads_ GUARDED_BY(mutex_);
  // joined by the next thread that ends, or the destructor
  std::list<std::thread> ended_ GUARDED_BY(mutex_);
  size_t idle_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace trainyard::os
