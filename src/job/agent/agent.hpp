// Runs one host of one attempt, from its order to its last fact: the loop that carries out the
// decisions of the lifecycle.
//
//   events (steps done, process exited, orders, time) --> next() --> actions
//   actions --> steps, signals, facts
//
// Accesses the outside only through Dependencies, HostLayout and the functions below, so tests run
// it without root, network or server.
//
// Threads: run() on one thread; deliver(), fence() and reclaim() from anywhere. It starts a worker
// for the steps and a watcher for the process, and has joined both when run() returns. Lifetime:
// the constructor's arguments must outlive it.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>

#include "agent/activity_watch.hpp"
#include "agent/output/metric_files.hpp"
#include "agent/output/stall_watch.hpp"
#include "agent/output/usage_meter.hpp"
#include "agent/shells.hpp"
#include "agent/step_context.hpp"
#include "base/thread_safety.hpp"
#include "base/watched_time.hpp"

namespace trainyard::agent {

class Agent {
 public:
  // `keys`: the keys that `world.objects` uses; the agent sets them from the server's orders.
  Agent(const wire::Order& order, const HostLayout& place, Dependencies& world, JobKeys& keys,
        bool died_before);
  ~Agent();

  // Passes a message of the server to the loop.
  void deliver(const wire::Message& message);
  // Kills all processes and ends the run, as after Refused.
  void fence();
  // Stops the process with the order's grace period, saves what it has written as checkpoints, and
  // ends the run: the machine is needed for something else. run() then returns false, unless the
  // server has stopped the host as well.
  void reclaim();

  // Returns true when the server has the last fact; false when the server refused the attempt, or
  // fence() or reclaim() ended the run.
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
  void report_metrics(std::vector<wire::MetricPoint> points);
  void check_stall();
  void record_largest_processes();
  void report_activity();

  const wire::Order& order_;
  Dependencies& world_;
  JobKeys& keys_;
  Interruption interruption_;
  WelcomeLatch welcome_;
  StepContext context_;
  HostRun run_;
  UsageMeter meter_;                              // confined to the watcher while it runs
  MetricFiles metric_files_;                      // confined to the watcher
  ActivityWatch activity_;                        // confined to the watcher
  std::atomic<bool> activity_forgotten_ = false;  // the server's, since the link is new
  std::vector<containers::ProcessMemory> largest_processes_;  // confined to the watcher
  bool left_ = false;
  bool dismissed_ = false;
  WatchedTime time_;  // of the loop: time during which the agent was suspended does not count
  std::optional<std::chrono::nanoseconds> grace_ends_;
  std::optional<std::chrono::nanoseconds> runtime_ends_;
  std::chrono::nanoseconds stall_checked_at_{};
  StallWatch stall_;

  Mutex mutex_;
  ConditionVariable changed_;  // an event has arrived, or the worker is free
  ConditionVariable ordered_;  // work_ or worker_ends_ has been set
  std::deque<Event> events_ GUARDED_BY(mutex_);
  std::optional<Stage> work_ GUARDED_BY(mutex_);  // the worker carries out the steps of this stage
  bool worker_ends_ GUARDED_BY(mutex_) = false;   // no further work follows

  std::atomic<bool> process_runs_ = false;
  std::thread worker_;   // one thread for all stages, started with the first stage
  std::thread watcher_;  // watches the process while it runs
  Shells shells_;
};

}  // namespace trainyard::agent
