// One host of one attempt, from its order to its last fact: the loop that carries out what the lifecycle
// decides.
//
//   events (steps done, process exited, orders from above, time) --> next() --> actions --> steps, signals,
//   facts
//
// Everything of the world comes through World, Place and the functions below, so tests run it without root,
// network or server.
//
// Threads: run() on one thread; deliver() and fence() from anywhere. It starts a worker for the steps and a
// watcher for the process, and has joined both when run() returns. Lifetime: what is passed to the
// constructor must outlive it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "agent/metric_files.hpp"
#include "agent/shells.hpp"
#include "agent/stall_watch.hpp"
#include "agent/step_context.hpp"
#include "agent/usage_meter.hpp"
#include "base/watched_time.hpp"

namespace trainyard::agent {

class Agent {
 public:
  // `keys` is what the world's object store asks; the agent fills it from the server's orders.
  Agent(const wire::Order& order, const Place& place, World& world, JobKeys& keys, bool died_before);
  ~Agent();

  // What the server said.
  void deliver(const wire::Message& message);
  // Kills everything and leaves, as after Refused.
  void fence();

  // Until the server has the last fact (true) or refused us, or fence() was called (false).
  bool run();

 private:
  void post(Event event);
  Event wait_event();
  void carry_out(const Action& action);
  void work(Stage stage);
  void carry_out_stages();
  void await_worker();
  void end_worker();
  void watch_process();
  void join_watcher();
  Result<std::unique_ptr<containers::ExecProcess>> start_shell(const wire::OpenShell& order);
  ProcessExited explain_exit(const containers::ContainerExit& exited);
  void measure();
  void tell(std::vector<wire::MetricPoint> points);
  void look_for_a_stall();

  const wire::Order& order_;
  World& world_;
  JobKeys& keys_;
  Interruption interruption_;
  Greeting greeting_;
  StepContext context_;
  HostRun run_;
  UsageMeter meter_;          // the watcher's, while it runs
  MetricFiles metric_files_;  // the watcher's
  bool left_ = false;
  bool dismissed_ = false;
  WatchedTime time_;  // of the loop: what a suspended agent did not see does not count
  std::optional<std::chrono::nanoseconds> grace_ends_;
  std::optional<std::chrono::nanoseconds> runtime_ends_;
  std::chrono::nanoseconds looked_at_{};
  StallWatch stall_;

  std::mutex mutex_;
  std::condition_variable changed_;  // an event has come, or the worker is free
  std::condition_variable ordered_;  // work_ or over_ was set
  std::deque<Event> events_;         // guarded by mutex_
  std::optional<Stage> work_;        // guarded by mutex_; the stage whose steps the worker carries out
  bool over_ = false;                // guarded by mutex_; no work follows

  std::atomic<bool> process_runs_ = false;
  std::thread worker_;   // one for all stages, from the first one on
  std::thread watcher_;  // of the process, while it runs
  Shells shells_;
};

}  // namespace trainyard::agent
