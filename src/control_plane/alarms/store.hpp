// An AlarmStore stores alarms, their history and their pending actions. A change is one
// transaction, durable when the call returns: a state, its history and the actions that it starts
// are stored together or not at all.
//
// Threads: call from anywhere; changes are made one after another.
// Errors: errors of the caller's `decide`, exhausted (disk full, limits), corrupt.
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
// The limit on pending actions of all alarms. Beyond it, new actions of alarms that have
// kPendingOfAlarmMax pending actions are dropped. So an alarm whose state changes all the time does
// not make other alarms lose actions.
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
  std::string alarm;                   // "": any
  std::vector<AlarmKind> alarm_kinds;  // empty: any
  std::optional<HistoryKind> kind;
  std::optional<Instant> from, to;  // inclusive
  bool oldest_first = false;
  int64_t after = 0;  // the number of the last item of the previous page; 0: none
  int64_t count_max = 100;
};
struct HistoryPage {
  std::vector<HistoryItem> items;
  int64_t last = 0;  // the number of the last item; 0: there are no further items
};

class AlarmStore {
 public:
  // Opens the file alarms.sqlite in `directory`. Tests pass a smaller `pending_actions_max`.
  static Result<std::unique_ptr<AlarmStore>> open(const std::string& directory,
                                                  int64_t pending_actions_max = kPendingActionsMax);

  // Returns the current alarms; never nullptr.
  std::shared_ptr<const Alarms> snapshot() const;

  // Calls `decide` with the current alarms and makes its change durable.
  Result<void> change(const std::function<Result<Change>(const Alarms&)>& decide);

  Result<HistoryPage> history(const HistoryQuery& query);

  // Returns the first due action of each target, sorted by the time at which it became due.
  Result<std::vector<PendingAction>> due_actions(Instant now, int64_t count_max);
  // Removes an action, and adds the item to the history if it is set.
  Result<void> end_action(int64_t number, const std::optional<HistoryItem>& item);
  Result<void> retry_action(int64_t number, int64_t attempts, Instant due);
  // Removes history older than kHistoryTime.
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
