// Runs operations one after another, in the order in which they were added.
//
// A thread of the worker runs them, unless a caller waits: a waiting caller runs due operations
// itself, which saves small operations two switches of threads. Waking a thread costs more than a
// small operation, and callers mostly wait at once; so small operations wake no thread, and a
// thread that polls starts those that no caller waits for. A task's `after` may add operations and
// wait for them in ways that the worker cannot see; so when all threads run an `after` and an
// operation is due, the worker starts one more thread.
//
// Threads: call from anywhere, also from a task's `after`. Errors: none; an operation stores its
// own. Lifetime: end() before the last owner is destroyed, and not from a task.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

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
  // Polls, one every kGrace, after the last small operation; then the thread sleeps until it is
  // woken.
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
  void carry_out_first(std::unique_lock<std::mutex>& lock);
  void carry_out_all();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void call_thread();

  std::mutex mutex_;
  std::condition_variable changed_;   // wakes threads of the worker
  std::condition_variable finished_;  // wakes waiting callers
  // guarded by mutex_; bounded by the callers' tensors
  std::deque<std::shared_ptr<Task>> backlog_;
  bool busy_ = false;  // guarded by mutex_
  // tasks whose `after` is running; guarded by mutex_
  int notifying_ = 0;
  bool ending_ = false;  // guarded by mutex_
  int idle_ = 0;         // threads that wait for work; guarded by mutex_
  // idle threads that poll; guarded by mutex_
  int polling_ = 0;
  int hurried_ = 0;          // of the backlog; guarded by mutex_
  uint64_t added_soon_ = 0;  // so far; guarded by mutex_
  // added_soon_ when a thread last stopped polling; guarded by mutex_
  uint64_t slept_at_ = 0;
  std::vector<std::thread> threads_;  // guarded by mutex_ until the end
};

}  // namespace trainyard::sdk
