// An AlarmLoop evaluates alarms when they are due, and carries out their actions.
//
// One thread evaluates, and does not wait for actions. A pool carries out actions, one at a time
// for each target, so that a target that hangs delays only its own actions. An action that fails is
// retried for a day, after waits that double up to five minutes. An action is stored with the
// transition that started it, and removed after it was carried out. A server that is killed in
// between carries it out again after its restart. While why_not returns a reason, the loop neither
// evaluates alarms nor carries out actions.
//
// Threads:  start() starts a thread; instead, one thread may call evaluate() and act().
// Errors:   errors of an alarm or action are logged and added to its history; others continue.
// Lifetime: the constructor's arguments outlive it. The destructor waits for actions in progress,
//           so a sink must return within its own timeout.
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

// A Sink carries out an action: action.target is an ARN or kEventBus, action.message the JSON to
// deliver. It is called at least once for each action, from several threads at once, and must
// return within a minute. An error of kind invalid, not_found or denied ends the action; after
// another error the action is retried.
using Sink = std::function<Result<void>(const PendingAction& action)>;

inline constexpr size_t kActionsAtOnceMax = 16;
inline constexpr Duration kRetryWaitMin = 1s, kRetryWaitMax = 5min;
inline constexpr Duration kRetryTime = 24h;

// Returns the wait after a number of failed attempts.
Duration retry_wait(int64_t attempts);

class AlarmLoop {
 public:
  // `why_not`: returns "" while this server may act, or the reason why it may not.
  AlarmLoop(
      AlarmStore& store, observe::Metrics& metrics, Clock& clock, const AlarmTexts& texts,
      Sink sink, std::function<std::string()> why_not = [] { return std::string(); });
  AlarmLoop(const AlarmLoop&) = delete;
  ~AlarmLoop();

  void start();

  // Evaluates the metric alarms that are due, then the composite alarms.
  void evaluate(Instant now);
  // Starts the actions that are due.
  void act(Instant now);

 private:
  void run();
  Result<void> evaluate_metric(const Alarm& alarm, Instant now);
  bool stopping();
  // Evaluates each composite alarm once, after the alarms in its rule.
  void evaluate_composites(Instant now);
  // Returns nullptr, and logs the error, if the rule cannot be parsed.
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
  // The following members are used only by the thread that evaluates.
  std::map<AlarmKey, Instant> evaluated_;  // the time of the last evaluation
  std::map<AlarmKey, ParsedRule> rules_;
  std::shared_ptr<const Alarms> settled_;  // with these, no composite alarm would change its state

  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::set<std::string> busy_ GUARDED_BY(mutex_);  // targets with an action in progress
  std::optional<os::ThreadPool> pool_;
  std::thread thread_;
};

}  // namespace trainyard::alarms
