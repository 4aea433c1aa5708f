// Judges alarms when they are due, and carries out their actions.
//
// One thread judges; it waits for no action. A pool carries out actions, one of each target at a
// time, so that a target that hangs delays only its own. An action that fails is tried again, after
// waits that double up to five minutes, for a day. It was stored with the transition that started
// it, and is removed after it was carried out: a server that is killed in between carries it out
// again. A server that may no longer act (why_not) does neither.
//
// Threads:  its own, after start(); evaluate() and act() may be called instead, from one thread.
// Errors:   of an alarm or an action: in the log and in the history; others continue.
// Lifetime: what it is given outlives it. The destructor waits for actions that are being carried
//           out: a sink returns within its own timeout.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "alarms/rule.hpp"
#include "alarms/store.hpp"
#include "alarms/transition.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "observe/metrics.hpp"
#include "os/thread_pool.hpp"

namespace trainyard::alarms {

// Carries out an action: action.target is its ARN or kEventBus, action.message the JSON to deliver.
// It is called at least once for each action, from several threads at once, and returns within a
// minute. An error of kind invalid, not_found or denied ends the action; after another one it is
// tried again.
using Sink = std::function<Result<void>(const PendingAction& action)>;

inline constexpr size_t kActionsAtOnceMax = 16;
inline constexpr Duration kRetryWaitMin = 1s, kRetryWaitMax = 5min;
inline constexpr Duration kRetryTime = 24h;

// The wait after a number of failed attempts.
Duration retry_wait(int64_t attempts);

class AlarmLoop {
 public:
  // `why_not`: "" while this server may act.
  AlarmLoop(
      AlarmStore& store, observe::Metrics& metrics, Clock& clock, const AlarmTexts& texts,
      Sink sink, std::function<std::string()> why_not = [] { return std::string(); });
  AlarmLoop(const AlarmLoop&) = delete;
  ~AlarmLoop();

  void start();

  // Judges the metric alarms that are due, then the composite ones.
  void evaluate(Instant now);
  // Begins the actions that are due.
  void act(Instant now);

 private:
  void run();
  Result<void> evaluate_metric(const Alarm& alarm, Instant now);
  bool stopping();
  // Evaluates each composite alarm once, after those in its rule.
  void evaluate_composites(Instant now);
  // Returns nullptr, and logs it, if the rule cannot be read.
  const Rule* rule_of(const Alarm& alarm);
  // Returns whether the state changed.
  Result<bool> evaluate_composite(const Alarm& alarm, const Rule& rule, const Alarms& all,
                                  Instant now);
  Result<bool> enter(const Alarm& alarm, State next, const Texts& reason, Instant now);
  void carry_out(const PendingAction& action);
  std::optional<HistoryItem> item_of(const PendingAction& action, const Result<void>& done,
                                     Instant now) const;

  AlarmStore& store_;
  observe::Metrics& metrics_;
  Clock& clock_;
  const AlarmTexts& texts_;
  const Sink sink_;
  const std::function<std::string()> why_not_;

  struct ParsedRule {
    std::string text;
    Rule rule;
  };
  // These are read and written by the judging thread only.
  std::map<AlarmKey, Instant> evaluated_;
  std::map<AlarmKey, ParsedRule> rules_;
  std::shared_ptr<const Alarms> settled_;  // all composite alarms agree with these states

  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::set<std::string> busy_ GUARDED_BY(mutex_);  // targets
  std::optional<os::ThreadPool> pool_;
  std::thread thread_;
};

}  // namespace trainyard::alarms
