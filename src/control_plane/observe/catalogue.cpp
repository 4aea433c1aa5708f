#include "observe/catalogue.hpp"

#include "base/json_record.hpp"

namespace trainyard::observe {
namespace {

constexpr int kCatalogueVersion = 1;

// Names are BLOBs: they are compared as bytes, and may have any bytes.
constexpr const char* kSchema = R"(
  CREATE TABLE IF NOT EXISTS groups (
    id INTEGER PRIMARY KEY, region BLOB NOT NULL, name BLOB NOT NULL, created INTEGER NOT NULL, UNIQUE (region, name));
  CREATE TABLE IF NOT EXISTS streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT, group_id INTEGER NOT NULL REFERENCES groups, name BLOB NOT NULL,
    created INTEGER NOT NULL, open INTEGER NOT NULL, first_segment INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0, first_event INTEGER, last_event INTEGER, last_ingestion INTEGER,
    UNIQUE (group_id, name));
  CREATE INDEX IF NOT EXISTS streams_open ON streams (id) WHERE open;
  CREATE TABLE IF NOT EXISTS group_settings (group_id INTEGER PRIMARY KEY, settings BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS definitions (
    region BLOB NOT NULL, kind INTEGER NOT NULL, group_name BLOB NOT NULL, name BLOB NOT NULL, body BLOB NOT NULL,
    changed INTEGER NOT NULL, PRIMARY KEY (region, kind, group_name, name)) WITHOUT ROWID)";

// The settings of a group are one JSON text, so that a new one needs no new column.
constexpr auto kGroupSettings =
    json_record<LogGroupSettings>("log group", [](auto& side, auto& settings) {
      side.if_set("retention_days", settings.retention_days);
      side("class", settings.log_class);
      side.if_set("kms_key_id", settings.kms_key_id);
      side.if_set("tags", settings.tags);
    });

#define STREAM_COLUMNS                                                                   \
  "SELECT s.id, g.region, g.name, s.name, s.created, s.open, s.first_segment, s.bytes, " \
  "s.first_event, s.last_event, s.last_ingestion "                                       \
  "FROM streams s JOIN groups g ON g.id = s.group_id "

Result<std::vector<StreamRow>> rows(Statement statement) {
  const auto instant = [&](int column) -> std::optional<Instant> {
    if (statement.empty(column)) return {};
    return from_milliseconds(statement.integer(column));
  };
  std::vector<StreamRow> found;
  while (TRY(statement.step())) {
    found.push_back(
        {.id = uint64_t(statement.integer(0)),
         .key = {statement.bytes(1), statement.bytes(2), statement.bytes(3)},
         .created = from_milliseconds(statement.integer(4)),
         .open = statement.integer(5) != 0,
         .first_segment = uint64_t(statement.integer(6)),
         .summary = {uint64_t(statement.integer(7)), instant(8), instant(9), instant(10)}});
  }
  return found;
}

void bind_instant(Statement& statement, const std::optional<Instant>& instant) {
  if (instant) {
    statement.bind(to_milliseconds(*instant));
  } else {
    statement.bind_null();
  }
}

Result<std::optional<int64_t>> group_id(Connection& connection, const std::string& region,
                                        const std::string& group) {
  auto statement = TRY(connection.prepare("SELECT id FROM groups WHERE region = ? AND name = ?"));
  if (!TRY(statement.bind_bytes(region).bind_bytes(group).step())) return std::optional<int64_t>();
  return std::optional<int64_t>(statement.integer(0));
}

// Returns false if the group exists already.
Result<bool> insert_group(Connection& connection, const std::string& region,
                          const std::string& group, Instant now) {
  auto statement = TRY(
      connection.prepare("INSERT OR IGNORE INTO groups (region, name, created) VALUES (?, ?, ?)"));
  TRY(statement.bind_bytes(region).bind_bytes(group).bind(to_milliseconds(now)).run());
  return connection.changes() != 0;
}

Result<bool> insert_stream(Connection& connection, const StreamKey& key, Instant now) {
  const auto group = TRY(group_id(connection, key.region, key.group));
  if (!group) return no_group(key.group);
  auto statement = TRY(connection.prepare(
      "INSERT OR IGNORE INTO streams (group_id, name, created, open) VALUES (?, ?, ?, 1)"));
  TRY(statement.bind(*group).bind_bytes(key.stream).bind(to_milliseconds(now)).run());
  return connection.changes() != 0;
}

Result<LogGroupSettings> read_settings(Connection& connection, int64_t group) {
  auto statement =
      TRY(connection.prepare("SELECT settings FROM group_settings WHERE group_id = ?"));
  if (!TRY(statement.bind(group).step())) return LogGroupSettings();
  return kGroupSettings.read(TRY(parse_json(statement.bytes(0))));
}

Result<void> write_settings(Connection& connection, int64_t group,
                            const LogGroupSettings& settings) {
  auto statement = TRY(connection.prepare("INSERT OR REPLACE INTO group_settings VALUES (?, ?)"));
  const std::string text = dump(kGroupSettings.write(settings));
  return statement.bind(group).bind_bytes(text).run();
}

// Returns the least text above all texts that begin with `prefix`; nullopt if there is none.
std::optional<std::string> after_prefix(std::string prefix) {
  while (!prefix.empty() && uint8_t(prefix.back()) == 0xff) prefix.pop_back();
  if (prefix.empty()) return {};
  prefix.back() = char(uint8_t(prefix.back()) + 1);
  return prefix;
}

}  // namespace

Error no_group(const std::string& group) {
  return not_found("log group '" + group + "' does not exist", LogResource::group);
}

Result<std::unique_ptr<Catalogue>> Catalogue::open(const std::string& path,
                                                   const std::string& files) {
  return std::unique_ptr<Catalogue>(
      new Catalogue(TRY(Database::open(path, kCatalogueVersion, kSchema, files))));
}

Result<void> Catalogue::create_group(const std::string& region, const std::string& group,
                                     Instant now, const LogGroupSettings& settings) {
  return database_->write([&](Connection& connection) -> Result<void> {
    if (!TRY(insert_group(connection, region, group, now)))
      return conflict("log group '" + group + "' exists", LogResource::group);
    return write_settings(connection, connection.last_row(), settings);
  });
}

Result<LogGroupInfo> Catalogue::group(const std::string& region, const std::string& group) {
  LogGroupInfo info;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    const auto id = TRY(group_id(connection, region, group));
    if (!id) return no_group(group);
    info.name = group;
    info.settings = TRY(read_settings(connection, *id));
    auto statement = TRY(connection.prepare("SELECT created FROM groups WHERE id = ?"));
    if (TRY(statement.bind(*id).step())) info.created = from_milliseconds(statement.integer(0));
    return ok();
  }));
  return info;
}

Result<void> Catalogue::change_group(const std::string& region, const std::string& group,
                                     const Logs::ChangeGroup& change) {
  return database_->write([&](Connection& connection) -> Result<void> {
    const auto id = TRY(group_id(connection, region, group));
    if (!id) return no_group(group);
    auto settings = TRY(read_settings(connection, *id));
    TRY(change(settings));
    return write_settings(connection, *id, settings);
  });
}

Result<std::vector<StreamRow>> Catalogue::delete_group(const std::string& region,
                                                       const std::string& group) {
  std::vector<StreamRow> streams;
  TRY(database_->write([&](Connection& connection) -> Result<void> {
    const auto id = TRY(group_id(connection, region, group));
    if (!id) return no_group(group);
    auto statement = TRY(connection.prepare(STREAM_COLUMNS "WHERE s.group_id = ? ORDER BY s.id"));
    statement.bind(*id);
    streams = TRY(rows(std::move(statement)));
    for (const char* sql :
         {"DELETE FROM streams WHERE group_id = ?", "DELETE FROM group_settings WHERE group_id = ?",
          "DELETE FROM groups WHERE id = ?"}) {
      auto removal = TRY(connection.prepare(sql));
      TRY(removal.bind(*id).run());
    }
    auto removal =
        TRY(connection.prepare("DELETE FROM definitions WHERE region = ? AND group_name = ?"));
    return removal.bind_bytes(region).bind_bytes(group).run();
  }));
  return streams;
}

Result<std::vector<Catalogue::Retention>> Catalogue::retentions() {
  std::vector<Retention> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare(
        "SELECT g.region, g.name, s.settings FROM group_settings s JOIN groups g ON g.id = "
        "s.group_id"));
    while (TRY(statement.step())) {
      const auto settings = TRY(kGroupSettings.read(TRY(parse_json(statement.bytes(2)))));
      if (settings.retention_days)
        found.push_back({statement.bytes(0), statement.bytes(1), *settings.retention_days});
    }
    return ok();
  }));
  return found;
}

Result<void> Catalogue::create_stream(const StreamKey& key, Instant now) {
  return database_->write([&](Connection& connection) -> Result<void> {
    if (!TRY(insert_stream(connection, key, now)))
      return conflict("log stream '" + key.stream + "' exists", LogResource::stream);
    return ok();
  });
}

Result<void> Catalogue::ensure_streams(const std::vector<StreamKey>& keys, Instant now) {
  std::vector<const StreamKey*> missing;
  for (const auto& key : keys) {
    auto row = find(key);
    if (row) continue;
    if (row.error().kind != Kind::not_found) return std::move(row).error();
    missing.push_back(&key);
  }
  if (missing.empty()) return ok();
  return database_->write([&](Connection& connection) -> Result<void> {
    for (const StreamKey* key : missing) {
      TRY(insert_group(connection, key->region, key->group, now));
      TRY(insert_stream(connection, *key, now));
    }
    return ok();
  });
}

Result<StreamRow> Catalogue::find(const StreamKey& key) {
  std::optional<StreamRow> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement =
        TRY(connection.prepare(STREAM_COLUMNS "WHERE g.region = ? AND g.name = ? AND s.name = ?"));
    statement.bind_bytes(key.region).bind_bytes(key.group).bind_bytes(key.stream);
    auto all = TRY(rows(std::move(statement)));
    if (!all.empty()) {
      found = std::move(all[0]);
      return ok();
    }
    if (!TRY(group_id(connection, key.region, key.group))) return no_group(key.group);
    return not_found("log stream '" + key.stream + "' does not exist", LogResource::stream);
  }));
  return *std::move(found);
}

Result<void> Catalogue::mark_open(uint64_t id) {
  return database_->write([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare("UPDATE streams SET open = 1 WHERE id = ?"));
    return statement.bind(int64_t(id)).run();
  });
}

Result<void> Catalogue::close(const std::vector<Closed>& streams) {
  if (streams.empty()) return ok();
  return database_->write([&](Connection& connection) -> Result<void> {
    for (const auto& stream : streams) {
      auto statement = TRY(connection.prepare(
          "UPDATE streams SET open = 0, bytes = ?, first_event = ?, last_event = ?, "
          "last_ingestion = ? WHERE id = ?"));
      statement.bind(int64_t(stream.summary.bytes));
      bind_instant(statement, stream.summary.first_event);
      bind_instant(statement, stream.summary.last_event);
      bind_instant(statement, stream.summary.last_ingestion);
      TRY(statement.bind(int64_t(stream.id)).run());
    }
    return ok();
  });
}

Result<void> Catalogue::retire_segments(uint64_t id, uint64_t first_segment) {
  return database_->write([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare("UPDATE streams SET first_segment = ? WHERE id = ?"));
    return statement.bind(int64_t(first_segment)).bind(int64_t(id)).run();
  });
}

Result<void> Catalogue::remove(const std::vector<uint64_t>& streams) {
  if (streams.empty()) return ok();
  return database_->write([&](Connection& connection) -> Result<void> {
    for (const uint64_t id : streams) {
      auto statement = TRY(connection.prepare("DELETE FROM streams WHERE id = ?"));
      TRY(statement.bind(int64_t(id)).run());
    }
    return ok();
  });
}

Result<std::vector<StreamRow>> Catalogue::streams(const std::string& region,
                                                  const std::string& group,
                                                  const std::string& prefix) {
  std::vector<StreamRow> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    const auto id = TRY(group_id(connection, region, group));
    if (!id) return no_group(group);
    const auto after = after_prefix(prefix);
    auto statement = TRY(connection.prepare(
        after ? STREAM_COLUMNS "WHERE s.group_id = ? AND s.name >= ? AND s.name < ? ORDER BY s.name"
              : STREAM_COLUMNS "WHERE s.group_id = ? AND s.name >= ? ORDER BY s.name"));
    statement.bind(*id).bind_bytes(prefix);
    if (after) statement.bind_bytes(*after);
    found = TRY(rows(std::move(statement)));
    return ok();
  }));
  return found;
}

Result<std::vector<StreamRow>> Catalogue::open_streams() {
  std::vector<StreamRow> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    found = TRY(rows(TRY(connection.prepare(STREAM_COLUMNS "WHERE s.open"))));
    return ok();
  }));
  return found;
}

Result<std::vector<StreamRow>> Catalogue::ended_before(Instant before) {
  std::vector<StreamRow> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare(
        STREAM_COLUMNS "WHERE NOT s.open AND coalesce(s.last_event, s.created) < ?"));
    statement.bind(to_milliseconds(before));
    found = TRY(rows(std::move(statement)));
    return ok();
  }));
  return found;
}

Result<std::vector<StreamRow>> Catalogue::started_before(Instant before) {
  std::vector<StreamRow> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare(STREAM_COLUMNS "WHERE s.open OR s.first_event < ?"));
    statement.bind(to_milliseconds(before));
    found = TRY(rows(std::move(statement)));
    return ok();
  }));
  return found;
}

Result<std::vector<Catalogue::GroupRow>> Catalogue::groups(const std::string& region,
                                                           const std::string& prefix) {
  std::vector<GroupRow> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare(
        "SELECT id, name, created, (SELECT coalesce(sum(bytes), 0) FROM streams WHERE "
        "group_id = groups.id AND NOT open) "
        "FROM groups WHERE region = ? AND substr(name, 1, ?) = ? ORDER BY name"));
    statement.bind_bytes(region).bind(int64_t(prefix.size())).bind_bytes(prefix);
    while (TRY(statement.step())) {
      GroupRow row{.info = {statement.bytes(1), from_milliseconds(statement.integer(2)),
                            uint64_t(statement.integer(3))}};
      auto open = TRY(connection.prepare("SELECT id FROM streams WHERE open AND group_id = ?"));
      open.bind(statement.integer(0));
      while (TRY(open.step())) row.open_streams.push_back(uint64_t(open.integer(0)));
      row.info.settings = TRY(read_settings(connection, statement.integer(0)));
      found.push_back(std::move(row));
    }
    return ok();
  }));
  return found;
}

}  // namespace trainyard::observe
