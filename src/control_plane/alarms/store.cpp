#include "alarms/store.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "os/files.hpp"

namespace trainyard::alarms {
namespace {

using observe::Connection;

constexpr int kAlarmsVersion = 1;

constexpr const char* kAlarmsSchema = R"(
  CREATE TABLE IF NOT EXISTS alarms (
    region BLOB NOT NULL, name BLOB NOT NULL, settings BLOB NOT NULL, configured INTEGER NOT NULL,
    state BLOB NOT NULL, reason BLOB NOT NULL, reason_data BLOB NOT NULL, updated INTEGER NOT NULL,
    transitioned INTEGER NOT NULL, PRIMARY KEY (region, name)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS history (
    number INTEGER PRIMARY KEY AUTOINCREMENT, region BLOB NOT NULL, alarm BLOB NOT NULL,
    alarm_kind BLOB NOT NULL, at INTEGER NOT NULL, kind BLOB NOT NULL, summary BLOB NOT NULL,
    data BLOB NOT NULL);
  CREATE INDEX IF NOT EXISTS history_by_alarm ON history (region, alarm, number);
  CREATE INDEX IF NOT EXISTS history_by_time ON history (at);
  CREATE TABLE IF NOT EXISTS actions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, region BLOB NOT NULL, alarm BLOB NOT NULL,
    alarm_kind BLOB NOT NULL, target BLOB NOT NULL, message BLOB NOT NULL, created INTEGER NOT NULL,
    attempts INTEGER NOT NULL, due INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS actions_by_due ON actions (due);
  CREATE INDEX IF NOT EXISTS actions_by_alarm ON actions (region, alarm))";

Result<void> write_alarm(Connection& connection, const Alarm& alarm) {
  auto statement =
      TRY(connection.prepare("INSERT OR REPLACE INTO alarms VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  const std::string settings = dump(write(alarm.settings));
  const std::string state(kStates.text(alarm.state.value));
  return statement.bind_bytes(alarm.key.region)
      .bind_bytes(alarm.key.name)
      .bind_bytes(settings)
      .bind(to_milliseconds(alarm.configured))
      .bind_bytes(state)
      .bind_bytes(alarm.state.reason)
      .bind_bytes(alarm.state.reason_data)
      .bind(to_milliseconds(alarm.state.updated))
      .bind(to_milliseconds(alarm.state.transitioned))
      .run();
}

Result<void> remove_alarm(Connection& connection, const AlarmKey& key) {
  auto statement = TRY(connection.prepare("DELETE FROM alarms WHERE region = ? AND name = ?"));
  return statement.bind_bytes(key.region).bind_bytes(key.name).run();
}

Result<void> write_item(Connection& connection, const HistoryItem& item) {
  {
    auto statement = TRY(connection.prepare(
        "INSERT INTO history (region, alarm, alarm_kind, at, kind, summary, data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)"));
    const std::string alarm_kind(kAlarmKinds.text(item.alarm_kind)),
        kind(kHistoryKinds.text(item.kind));
    TRY(statement.bind_bytes(item.alarm.region)
            .bind_bytes(item.alarm.name)
            .bind_bytes(alarm_kind)
            .bind(to_milliseconds(item.at))
            .bind_bytes(kind)
            .bind_bytes(item.summary)
            .bind_bytes(item.data)
            .run());
  }
  auto statement = TRY(connection.prepare(
      "DELETE FROM history WHERE region = ?1 AND alarm = ?2 AND number <= (SELECT number FROM "
      "history WHERE region = ?1 AND alarm = ?2 ORDER BY number DESC LIMIT 1 OFFSET ?3)"));
  return statement.bind_bytes(item.alarm.region)
      .bind_bytes(item.alarm.name)
      .bind(kHistoryItemsMax)
      .run();
}

// Returns whether the alarm has kPendingOfAlarmMax pending actions.
Result<bool> has_many_pending(Connection& connection, const AlarmKey& alarm) {
  auto statement = TRY(connection.prepare(
      "SELECT count(*) FROM (SELECT 1 FROM actions WHERE region = ? AND alarm = ? LIMIT ?)"));
  statement.bind_bytes(alarm.region).bind_bytes(alarm.name).bind(kPendingOfAlarmMax);
  TRY(statement.step());
  return statement.integer(0) >= kPendingOfAlarmMax;
}

Result<void> write_action(Connection& connection, const PendingAction& action) {
  auto statement = TRY(connection.prepare(
      "INSERT INTO actions (region, alarm, alarm_kind, target, message, created, attempts, due) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  const std::string alarm_kind(kAlarmKinds.text(action.alarm_kind));
  return statement.bind_bytes(action.alarm.region)
      .bind_bytes(action.alarm.name)
      .bind_bytes(alarm_kind)
      .bind_bytes(action.target)
      .bind_bytes(action.message)
      .bind(to_milliseconds(action.created))
      .bind(action.attempts)
      .bind(to_milliseconds(action.due))
      .run();
}

Result<Alarm> alarm_in(const observe::Statement& row) {
  Alarm alarm;
  alarm.key = {row.bytes(0), row.bytes(1)};
  alarm.settings = TRY(read_settings(TRY(parse_json(row.bytes(2)))));
  alarm.configured = from_milliseconds(row.integer(3));
  alarm.state = {TRY(kStates.parse(row.bytes(4))), row.bytes(5), row.bytes(6),
                 from_milliseconds(row.integer(7)), from_milliseconds(row.integer(8))};
  return alarm;
}

Result<HistoryItem> item_in(const observe::Statement& row) {
  const AlarmKind alarm_kind = TRY(kAlarmKinds.parse(row.bytes(3)));
  const HistoryKind kind = TRY(kHistoryKinds.parse(row.bytes(5)));
  return HistoryItem{{row.bytes(1), row.bytes(2)},
                     alarm_kind,
                     from_milliseconds(row.integer(4)),
                     kind,
                     row.bytes(6),
                     row.bytes(7)};
}

}  // namespace

Result<std::unique_ptr<AlarmStore>> AlarmStore::open(const std::string& directory,
                                                     int64_t pending_actions_max) {
  TRY(os::make_directories(directory));
  auto database =
      TRY(observe::Database::open(directory + "/alarms.sqlite", kAlarmsVersion, kAlarmsSchema));
  TRY(os::sync_directory(directory));
  std::unique_ptr<AlarmStore> store(new AlarmStore(std::move(database), pending_actions_max));
  TRY(store->load());
  return store;
}

// A record that cannot be read stays in the database and is logged; the other alarms are loaded.
Result<void> AlarmStore::load() {
  Alarms all;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare("SELECT * FROM alarms"));
    while (TRY(statement.step())) {
      auto alarm = alarm_in(statement);
      if (!alarm) {
        log(Level::error, "alarms", "ignored an alarm with an invalid record; it stays stored",
            {{"alarm", statement.bytes(1)}, {"why", alarm.error().message}});
        continue;
      }
      auto shared = std::make_shared<const Alarm>(std::move(*alarm));
      all[shared->key] = std::move(shared);
    }
    return ok();
  }));
  const MutexLock lock(mutex_);
  alarms_ = std::make_shared<const Alarms>(std::move(all));
  return ok();
}

std::shared_ptr<const Alarms> AlarmStore::snapshot() const {
  const MutexLock lock(mutex_);
  return alarms_;
}

Result<void> AlarmStore::write(Connection& connection, const Change& change) const {
  for (const Alarm& each : change.stored) TRY(write_alarm(connection, each));
  for (const AlarmKey& each : change.removed) TRY(remove_alarm(connection, each));
  for (const HistoryItem& each : change.history) TRY(write_item(connection, each));
  std::optional<int64_t> pending;  // all pending actions, counted when needed
  for (const PendingAction& each : change.actions) {
    if (TRY(has_many_pending(connection, each.alarm))) {
      if (!pending) pending = TRY(connection.integer("SELECT count(*) FROM actions"));
      if (*pending >= pending_actions_max_) {
        log(Level::error, "alarms", "an action was dropped: too many are pending",
            {{"alarm", each.alarm.name}, {"target", each.target}});
        continue;
      }
    }
    TRY(write_action(connection, each));
    if (pending) ++*pending;
  }
  return ok();
}

Result<void> AlarmStore::change(const std::function<Result<Change>(const Alarms&)>& decide) {
  const MutexLock one_at_a_time(changing_);
  const auto present = snapshot();
  const Change change = TRY(decide(*present));
  Alarms next = *present;
  for (const Alarm& each : change.stored) next[each.key] = std::make_shared<const Alarm>(each);
  for (const AlarmKey& each : change.removed) next.erase(each);
  if (next.size() > kAlarmsMax && next.size() > present->size())
    return exhausted("the limit of " + std::to_string(kAlarmsMax) +
                     " alarms is reached; delete an alarm first");
  TRY(database_->write([&](Connection& connection) { return write(connection, change); }));
  const MutexLock lock(mutex_);
  alarms_ = std::make_shared<const Alarms>(std::move(next));
  return ok();
}

Result<HistoryPage> AlarmStore::history(const HistoryQuery& query) {
  HistoryPage page;
  const std::string kind = query.kind ? std::string(kHistoryKinds.text(*query.kind)) : "";
  const auto wants = [&](AlarmKind each) {
    return query.alarm_kinds.empty() ||
           std::ranges::find(query.alarm_kinds, each) != query.alarm_kinds.end();
  };
  const char* order =
      query.oldest_first
          ? "AND number > ?6 AND (?7 OR alarm_kind = x'6d6574726963') AND (?8 OR alarm_kind <> "
            "x'6d6574726963') ORDER BY number LIMIT ?9"
          : "AND (?6 = 0 OR number < ?6) AND (?7 OR alarm_kind = x'6d6574726963') AND (?8 OR "
            "alarm_kind <> x'6d6574726963') ORDER BY number DESC LIMIT ?9";
  const std::string sql =
      "SELECT number, region, alarm, alarm_kind, at, kind, summary, data FROM history WHERE "
      "region = ?1 AND (?2 = x'' OR alarm = ?2) AND (?3 = x'' OR kind = ?3) AND at >= ?4 AND at "
      "<= ?5 " +
      std::string(order);
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare(sql));
    statement.bind_bytes(query.region)
        .bind_bytes(query.alarm)
        .bind_bytes(kind)
        .bind(query.from ? to_milliseconds(*query.from) : INT64_MIN)
        .bind(query.to ? to_milliseconds(*query.to) : INT64_MAX)
        .bind(query.after)
        .bind(int64_t(wants(AlarmKind::composite)))
        .bind(int64_t(wants(AlarmKind::metric)))
        .bind(query.count_max + 1);
    while (TRY(statement.step())) {
      if (int64_t(page.items.size()) == query.count_max) return ok();
      page.items.push_back(TRY(item_in(statement)));
      page.last = statement.integer(0);
    }
    page.last = 0;
    return ok();
  }));
  return page;
}

Result<std::vector<PendingAction>> AlarmStore::due_actions(Instant now, int64_t count_max) {
  std::vector<PendingAction> due;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare(
        "SELECT min(number), region, alarm, alarm_kind, target, message, created, attempts, due "
        "FROM actions WHERE due <= ? GROUP BY target ORDER BY due, number LIMIT ?"));
    statement.bind(to_milliseconds(now)).bind(count_max);
    while (TRY(statement.step())) {
      const AlarmKind kind = TRY(kAlarmKinds.parse(statement.bytes(3)));
      due.push_back({statement.integer(0),
                     {statement.bytes(1), statement.bytes(2)},
                     kind,
                     statement.bytes(4),
                     statement.bytes(5),
                     from_milliseconds(statement.integer(6)),
                     statement.integer(7),
                     from_milliseconds(statement.integer(8))});
    }
    return ok();
  }));
  return due;
}

Result<void> AlarmStore::end_action(int64_t number, const std::optional<HistoryItem>& item) {
  return database_->write([&](Connection& connection) -> Result<void> {
    {
      auto statement = TRY(connection.prepare("DELETE FROM actions WHERE number = ?"));
      TRY(statement.bind(number).run());
    }
    return item ? write_item(connection, *item) : ok();
  });
}

Result<void> AlarmStore::retry_action(int64_t number, int64_t attempts, Instant due) {
  return database_->write([&](Connection& connection) -> Result<void> {
    auto statement =
        TRY(connection.prepare("UPDATE actions SET attempts = ?, due = ? WHERE number = ?"));
    return statement.bind(attempts).bind(to_milliseconds(due)).bind(number).run();
  });
}

Result<void> AlarmStore::retire(Instant now) {
  return database_->write([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare("DELETE FROM history WHERE at < ?"));
    return statement.bind(to_milliseconds(now - kHistoryTime)).run();
  });
}

}  // namespace trainyard::alarms
