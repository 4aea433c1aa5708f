#include "os/thread_pool.hpp"

#include <system_error>
#include <utility>

#include "base/thread_safety.hpp"

namespace trainyard::os {

ThreadPool::ThreadPool(size_t threads_max, Duration idle_limit)
    : threads_max_(threads_max), idle_limit_(idle_limit) {}

ThreadPool::~ThreadPool() {
  MutexLock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&]() REQUIRES(mutex_) { return threads_.empty(); });
  for (std::thread& thread : ended_) thread.join();
}

bool ThreadPool::run(std::function<void()> work) {
  std::list<std::thread> ended;
  {
    const MutexLock lock(mutex_);
    backlog_.push_back(std::move(work));
    ended.swap(ended_);
    if (idle_ >= backlog_.size()) {
      changed_.notify_one();
    } else if (threads_.size() < threads_max_) {
      threads_.emplace_back();
      try {
        threads_.back() = std::thread(&ThreadPool::serve, this, std::prev(threads_.end()));
      } catch (const std::system_error&) {
        threads_.pop_back();
        if (threads_.empty()) {
          backlog_.pop_back();
          return false;
        }
      }
    }
  }
  for (std::thread& thread : ended) thread.join();
  return true;
}

void ThreadPool::serve(std::list<std::thread>::iterator self) {
  MutexLock lock(mutex_);
  for (;;) {
    idle_++;
    changed_.wait_for(lock, idle_limit_,
                      [&]() REQUIRES(mutex_) { return stopping_ || !backlog_.empty(); });
    idle_--;
    if (backlog_.empty()) break;  // stopping, or idle for too long
    std::function<void()> work = std::move(backlog_.front());
    backlog_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
  ended_.splice(ended_.end(), threads_, self);
  changed_.notify_all();
}

}  // namespace trainyard::os
