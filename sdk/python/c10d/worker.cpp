#include "sdk/python/c10d/worker.hpp"

#include <utility>

namespace trainyard::sdk {

void Worker::end() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    ending_ = true;  // no thread is added after this
    threads.swap(threads_);
  }
  changed_.notify_all();
  for (auto& thread : threads) thread.join();
}

std::shared_ptr<Worker::Task> Worker::add(std::function<void()> work, std::function<void()> after,
                                          Start start) {
  auto task = std::make_shared<Task>();
  task->work = std::move(work);
  task->after = std::move(after);
  {
    const MutexLock lock(mutex_);
    backlog_.push_back(task);
    if (start == Start::soon) {
      task->hurried = false;
      task->due = std::chrono::steady_clock::now() + kGrace;
      ++added_soon_;
    } else {
      ++hurried_;
    }
    if (!busy_ && (task->hurried || polling_ == 0)) call_thread();
  }
  return task;
}

void Worker::call_thread() {
  if (idle_ > 0) {
    changed_.notify_one();
  } else if (!ending_) {
    threads_.emplace_back([this] { carry_out_all(); });
  }
}

void Worker::wait(const std::shared_ptr<Task>& task) {
  MutexLock lock(mutex_);
  while (!task->done) {
    if (!busy_ && !backlog_.empty()) {
      carry_out_first();
    } else {
      finished_.wait(lock);
    }
  }
}

void Worker::carry_out_first() {
  const auto task = std::move(backlog_.front());
  backlog_.pop_front();
  hurried_ -= task->hurried;
  busy_ = true;
  {
    const MutexUnlock unlocked(mutex_);
    task->work();
    task->work = nullptr;  // frees the tensors that it holds
  }
  busy_ = false;
  ++notifying_;
  task->done = true;
  if (!backlog_.empty()) call_thread();
  if (ending_) changed_.notify_all();
  {
    const MutexUnlock unlocked(mutex_);
    finished_.notify_all();  // also callers that may run the next operation
    task->after();
    task->after = nullptr;
  }
  if (--notifying_ == 0) finished_.notify_all();
}

void Worker::settle() {
  MutexLock lock(mutex_);
  finished_.wait_for(lock, kSettleMax, [&]() REQUIRES(mutex_) {
    return !busy_ && backlog_.empty() && notifying_ == 0;
  });
}

void Worker::wait_for_work(MutexLock& lock) {
  // After a large operation no thread polls for small ones: each poll interrupts the computation.
  int quiet_polls = added_soon_ == slept_at_ ? kQuietPollsMax : 0;
  uint64_t seen = added_soon_;
  for (;;) {
    if (!busy_ && ending_) return;
    if (!busy_ && !backlog_.empty() &&
        (hurried_ > 0 || std::chrono::steady_clock::now() >= backlog_.front()->due)) {
      return;
    }
    quiet_polls = added_soon_ == seen ? quiet_polls + 1 : 0;
    seen = added_soon_;
    if (added_soon_ == 0 || quiet_polls > kQuietPollsMax) {
      slept_at_ = added_soon_;
      changed_.wait(lock);
    } else {
      ++polling_;
      changed_.wait_for(lock, kGrace);
      --polling_;
    }
  }
}

void Worker::carry_out_all() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_;
    wait_for_work(lock);
    --idle_;
    if (backlog_.empty()) return;
    carry_out_first();
  }
}

}  // namespace trainyard::sdk
