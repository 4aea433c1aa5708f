// Runs work on threads that are made on demand and end when they have been idle for a while.
//
// Threads: run() from anywhere. Lifetime: the destructor waits for all work given, queued work included.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "base/time.hpp"

namespace trainyard::os {

class ThreadPool {
 public:
  // `threads_max` at once; an idle thread ends after `idle_limit`.
  explicit ThreadPool(size_t threads_max, Duration idle_limit = 10s);
  ThreadPool(const ThreadPool&) = delete;
  ~ThreadPool();

  // Work beyond threads_max waits, in order. The caller limits the number of waiting items. False when there is no
  // thread and none could be made: the work is dropped.
  bool run(std::function<void()> work);

 private:
  void serve(std::list<std::thread>::iterator self);

  const size_t threads_max_;
  const Duration idle_limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::deque<std::function<void()>> backlog_;
  std::list<std::thread> threads_;
  std::list<std::thread> ended_;  // joined by the next thread that ends, or the destructor
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace trainyard::os
