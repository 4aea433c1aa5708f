// Carries out one piece of work after another, in the order in which they were asked for.
//
// A thread of its own does it, unless somebody waits: whoever waits carries out what is due itself,
// which spares small operations two switches of threads. Waking a thread costs more than a small
// operation, too: who asks for one mostly waits for it at once, so nobody is woken; a thread that
// looks now and then begins it if not. What is told at a task's end may ask for more and wait for
// it in ways that we do not see, so there is one more thread whenever all are telling and work is
// due.
//
// Threads: call from anywhere, also from a task's `after`. Errors: none; work keeps its own.
// Lifetime: end() before the last owner lets go, and not from a task.
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
    std::function<void()> after;  // tells who wants to know; may ask for more work and wait for it
    bool done = false;            // guarded by the worker's mutex: `work` is over
    bool hurried = true;          // the rest: guarded by the worker's mutex
    std::chrono::steady_clock::time_point due{};
  };

  // When our own thread begins it, unless somebody waits: at once, or when nobody came for `grace`.
  enum class Start { now, soon };
  // Twenty times what a caller needs from asking to waiting; a thousandth of a step that computes
  // meanwhile.
  static constexpr std::chrono::microseconds kGrace{300};
  // How long a thread goes on looking every `grace` after the last small operation. Then it sleeps,
  // and is woken.
  static constexpr int kQuietPollsMax = 70;

  Worker() = default;
  ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::shared_ptr<Task> add(std::function<void()> work, std::function<void()> after,
                            Start start = Start::now);
  // Returns when `work` is over; `after` may still be under way in another thread.
  void wait(const std::shared_ptr<Task>& task);
  // Returns when nothing is left to do or to tell, or when this has taken too long. Python calls it
  // before it ends: a thread that then still lets go of Python's objects would take the process
  // down with it.
  void settle();
  // longer than any telling; a peer may never come
  static constexpr std::chrono::seconds kSettleMax{5};
  // Carries out what is left, then ends the thread. Nothing may be added any more.
  void end();

 private:
  void carry_out_first(std::unique_lock<std::mutex>& lock);
  void carry_out_all();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void call_thread();

  std::mutex mutex_;
  std::condition_variable changed_;   // for our threads
  std::condition_variable finished_;  // for those who wait
  // guarded by mutex_; bounded by the callers' own tensors
  std::deque<std::shared_ptr<Task>> backlog_;
  bool busy_ = false;  // guarded by mutex_
  // tasks whose `after` is under way; guarded by mutex_
  int notifying_ = 0;
  bool ending_ = false;  // guarded by mutex_
  int idle_ = 0;         // threads that wait for work; guarded by mutex_
  // those of them that look without being woken; guarded by mutex_
  int polling_ = 0;
  int hurried_ = 0;          // of the backlog; guarded by mutex_
  uint64_t added_soon_ = 0;  // so far; guarded by mutex_
  // added_soon_ when a thread last gave up looking; guarded by mutex_
  uint64_t slept_at_ = 0;
  std::vector<std::thread> threads_;  // guarded by mutex_ until the end
};

}  // namespace trainyard::sdk
