// Threads that are made when there is work and end when there has been none for a while.
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

  // Work beyond threads_max waits, in order. What bounds how much may wait is the caller's own limit. False
  // when no thread could be made and none is there to do it: the work is dropped.
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
  std::list<std::thread> ended_;  // to be joined by whoever comes next
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace trainyard::os
