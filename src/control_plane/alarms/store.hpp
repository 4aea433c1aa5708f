// Stores alarms, their history and their pending actions. A change is one transaction, and durable
// when it returns: a state, its history and the actions that it starts are stored together or not
// at all.
//
// Threads: call from anywhere; changes are made one after another.
// Errors: those of the change, exhausted (disk full, limits), corrupt.
// Format: docs/formats/alarms.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "alarms/alarm.hpp"
#include "base/thread_safety.hpp"
#include "observe/database.hpp"

namespace trainyard::alarms {

inline constexpr size_t kAlarmsMax = 10'000;        // in all regions together
inline constexpr Duration kHistoryTime = 30 * 24h;  // as on AWS
inline constexpr int64_t kHistoryItemsMax = 1000;   // for each alarm
// Pending actions of all alarms. With more, those of alarms that have kPendingOfAlarmMax themselves
// are dropped, so that an alarm whose state changes all the time drops no action of another.
inline constexpr int64_t kPendingActionsMax = 100'000;
inline constexpr int64_t kPendingOfAlarmMax = 12;  // two changes of the state

using Alarms = std::map<AlarmKey, std::shared_ptr<const Alarm>>;

struct Change {
  std::vector<Alarm> stored;  // new or changed
  std::vector<AlarmKey> removed;
  std::vector<HistoryItem> history;
  std::vector<PendingAction> actions;
};

struct HistoryQuery {
  std::string region;
  std::string alarm;                   // "": of any
  std::vector<AlarmKind> alarm_kinds;  // empty: any
  std::optional<HistoryKind> kind;
  std::optional<Instant> from, to;  // inclusive
  bool oldest_first = false;
  int64_t after = 0;  // the number of the last item of the previous page; 0: none
  int64_t count_max = 100;
};
struct HistoryPage {
  std::vector<HistoryItem> items;
  int64_t last = 0;  // the number of the last item; 0: there are no more
};

class AlarmStore {
 public:
  // One file below `directory`. `pending_actions_max`: another one in tests.
  static Result<std::unique_ptr<AlarmStore>> open(const std::string& directory,
                                                  int64_t pending_actions_max = kPendingActionsMax);

  // Never nullptr.
  std::shared_ptr<const Alarms> snapshot() const;

  // Calls `decide` with the current alarms and makes its change durable.
  Result<void> change(const std::function<Result<Change>(const Alarms&)>& decide);

  Result<HistoryPage> history(const HistoryQuery& query);

  // The first action that is due of each target, the longest due first.
  Result<std::vector<PendingAction>> due_actions(Instant now, int64_t count_max);
  // Ends an action, and adds an item to the history, if one is given.
  Result<void> end_action(int64_t number, const std::optional<HistoryItem>& item);
  Result<void> retry_action(int64_t number, int64_t attempts, Instant due);
  // Removes old history.
  Result<void> retire(Instant now);

 private:
  AlarmStore(std::unique_ptr<observe::Database> database, int64_t pending_actions_max)
      : database_(std::move(database)), pending_actions_max_(pending_actions_max) {}
  Result<void> load();
  Result<void> write(observe::Connection& connection, const Change& change) const;

  const std::unique_ptr<observe::Database> database_;
  const int64_t pending_actions_max_;
  Mutex changing_;  // held by one change() at a time
  mutable Mutex mutex_;
  std::shared_ptr<const Alarms> alarms_ GUARDED_BY(mutex_) = std::make_shared<const Alarms>();
};

}  // namespace trainyard::alarms
