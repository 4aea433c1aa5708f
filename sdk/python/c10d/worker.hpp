// A Worker runs operations one after another, in the order in which they were added.
//
// A thread of the worker runs them, unless a caller waits: a waiting caller runs due operations
// itself, which saves two thread switches for small operations. Waking a thread costs more than a
// small operation, and callers mostly wait at once. So small operations wake no thread, and a
// polling thread starts operations for which no caller waits. A task's `after` may add operations
// and wait for them in ways that the worker cannot see. So if all threads run an `after` and an
// operation is due, the worker starts one more thread.
//
// Threads: call from any thread, also from a task's `after`. Errors: none; an operation stores its
// own. Lifetime: call end() before the last owner is destroyed, and not from a task.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/thread_safety.hpp"

namespace trainyard::sdk {

class Worker {
 public:
  struct Task {
    std::function<void()> work;   // one at a time
    std::function<void()> after;  // reports the end; may add operations and wait for them
    bool done = false;            // guarded by the worker's mutex: `work` has ended
    bool hurried = true;          // guarded by the worker's mutex, like `due`
    std::chrono::steady_clock::time_point due{};
  };

  // The time at which a thread of the worker starts the operation if no caller waits for it: at
  // once, or after kGrace.
  enum class Start { now, soon };
  // Twenty times the time between a caller's add() and wait(); a thousandth of a training step.
  static constexpr std::chrono::microseconds kGrace{300};
  // The number of polls, one every kGrace, after the last small operation; then the thread sleeps
  // until it is woken.
  static constexpr int kQuietPollsMax = 70;

  Worker() = default;
  ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::shared_ptr<Task> add(std::function<void()> work, std::function<void()> after,
                            Start start = Start::now);
  // Returns when `work` has ended; `after` may still be running in another thread.
  void wait(const std::shared_ptr<Task>& task);
  // Returns when all tasks and their `after` have ended, or after kSettleMax. Python calls it
  // before it exits: a thread that released Python objects later would crash the process.
  void settle();
  // longer than any `after`; a peer may never arrive
  static constexpr std::chrono::seconds kSettleMax{5};
  // Runs the remaining operations, then ends the threads. Requires: no add() follows.
  void end();

 private:
  // Runs the first operation, without holding the mutex. Requires: no operation runs; one is due.
  void carry_out_first() REQUIRES(mutex_);
  void carry_out_all();
  // Returns when an operation is due, or the worker ends. Requires: `lock` holds mutex_.
  void wait_for_work(MutexLock& lock) REQUIRES(mutex_);
  // Wakes or starts a thread. Requires: no operation runs; one is due.
  void call_thread() REQUIRES(mutex_);

  Mutex mutex_;
  ConditionVariable changed_;                                     // wakes threads of the worker
  ConditionVariable finished_;                                    // wakes waiting callers
  std::deque<std::shared_ptr<Task>> backlog_ GUARDED_BY(mutex_);  // bounded by callers' tensors
  bool busy_ GUARDED_BY(mutex_) = false;
  int notifying_ GUARDED_BY(mutex_) = 0;  // tasks whose `after` is running
  bool ending_ GUARDED_BY(mutex_) = false;
  int idle_ GUARDED_BY(mutex_) = 0;             // threads that wait for work
  int polling_ GUARDED_BY(mutex_) = 0;          // idle threads that poll
  int hurried_ GUARDED_BY(mutex_) = 0;          // tasks in backlog_
  uint64_t added_soon_ GUARDED_BY(mutex_) = 0;  // so far
  // added_soon_ when a thread last stopped polling
  uint64_t slept_at_ GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::sdk
