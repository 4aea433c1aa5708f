#include "observe/stored_journal.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace trainyard::observe {
namespace {

constexpr uint64_t kTrimInterval = 1'000;  // points between two removals of the oldest ones
constexpr const char* kJournalSchema[] = {
    "CREATE TABLE IF NOT EXISTS journal (sequence INTEGER PRIMARY KEY AUTOINCREMENT, series "
    "INTEGER NOT NULL, at INTEGER NOT NULL, value REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS journal_readers (name BLOB PRIMARY KEY, position INTEGER NOT NULL) "
    "WITHOUT ROWID"};

// The number of the last point, also if it has left the journal.
Result<int64_t> last_sequence(Connection& connection) {
  auto statement =
      TRY(connection.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'journal'"));
  if (!TRY(statement.step())) return 0;
  return statement.integer(0);
}

Result<int64_t> position_of(Connection& connection, const std::string& reader) {
  auto statement = TRY(connection.prepare("SELECT position FROM journal_readers WHERE name = ?"));
  if (!TRY(statement.bind_bytes(reader).step()))
    return not_found("the journal of points has no reader '" + reader + "'");
  return statement.integer(0);
}

// Removes the points that all readers have read; without readers, all points.
Result<void> trim(Connection& connection) {
  auto statement = TRY(
      connection.prepare("DELETE FROM journal WHERE sequence <= (SELECT coalesce(min(position), "
                         "9223372036854775807) FROM journal_readers)"));
  return statement.run();
}

class StoredJournal final : public PointJournal {
 public:
  StoredJournal(Database& database, KeyOfSeries key_of)
      : database_(database), key_of_(std::move(key_of)) {}

  Result<JournalPage> read(const std::string& reader, size_t count_max) override {
    JournalPage page;
    TRY(database_.read(
        [&](Connection& connection) { return fill(connection, reader, count_max, page); }));
    return page;
  }

  Result<void> advance(const std::string& reader, uint64_t position) override {
    return database_.write([&](Connection& connection) -> Result<void> {
      TRY(position_of(connection, reader));
      {
        auto statement = TRY(connection.prepare(
            "UPDATE journal_readers SET position = max(position, ?) WHERE name = ?"));
        TRY(statement.bind(int64_t(position)).bind_bytes(reader).run());
      }
      return trim(connection);
    });
  }

  Result<uint64_t> behind(const std::string& reader) override {
    uint64_t count = 0;
    TRY(database_.read([&](Connection& connection) -> Result<void> {
      const int64_t position = TRY(position_of(connection, reader));
      count = uint64_t(std::max<int64_t>(TRY(last_sequence(connection)) - position, 0));
      return ok();
    }));
    return count;
  }

 private:
  struct Row {
    int64_t series;
    Instant at;
    double value;
  };

  Result<void> fill(Connection& connection, const std::string& reader, size_t count_max,
                    JournalPage& page) const {
    const int64_t position = TRY(position_of(connection, reader));
    page.position = uint64_t(position);
    std::vector<Row> rows;
    std::optional<int64_t> first;
    {
      auto statement = TRY(connection.prepare(
          "SELECT sequence, series, at, value FROM journal WHERE sequence > ? ORDER BY sequence "
          "LIMIT ?"));
      statement.bind(position).bind(int64_t(count_max));
      while (TRY(statement.step())) {
        if (!first) first = statement.integer(0);
        page.position = uint64_t(statement.integer(0));
        rows.push_back(
            {statement.integer(1), from_milliseconds(statement.integer(2)), statement.real(3)});
      }
    }
    page.empty = rows.empty();
    // Numbers have gaps only where points have left the journal.
    if (first) page.lost = uint64_t(*first - position - 1);
    return resolve(connection, rows, page.records);
  }

  Result<void> resolve(Connection& connection, const std::vector<Row>& rows,
                       std::vector<MetricRecord>& records) const {
    std::map<int64_t, std::optional<MetricKey>> keys;
    for (const Row& row : rows) {
      auto found = keys.find(row.series);
      if (found == keys.end()) {
        auto key = key_of_(connection, row.series);
        if (!key && key.error().kind != Kind::not_found) return key.error();
        found = keys.emplace(row.series, key ? std::optional(*std::move(key)) : std::nullopt).first;
      }
      if (found->second) records.push_back({*found->second, sample_of(row.at, row.value)});
    }
    return ok();
  }

  Database& database_;
  const KeyOfSeries key_of_;
};

}  // namespace

Result<void> prepare_journal(Database& database, const JournalSettings& settings) {
  return database.write([&](Connection& connection) -> Result<void> {
    for (const char* table : kJournalSchema) TRY(connection.run(table));
    std::vector<std::string> former;
    {
      auto statement = TRY(connection.prepare("SELECT name FROM journal_readers"));
      while (TRY(statement.step())) former.push_back(statement.bytes(0));
    }
    for (const std::string& name : former) {
      if (std::ranges::find(settings.readers, name) != settings.readers.end()) continue;
      auto statement = TRY(connection.prepare("DELETE FROM journal_readers WHERE name = ?"));
      TRY(statement.bind_bytes(name).run());
    }
    const int64_t end = TRY(last_sequence(connection));
    for (const std::string& name : settings.readers) {
      auto statement =
          TRY(connection.prepare("INSERT OR IGNORE INTO journal_readers VALUES (?, ?)"));
      TRY(statement.bind_bytes(name).bind(end).run());
    }
    return trim(connection);
  });
}

Result<void> add_to_journal(Connection& connection, int64_t series, Instant at, double value,
                            const JournalSettings& settings) {
  {
    auto statement =
        TRY(connection.prepare("INSERT INTO journal (series, at, value) VALUES (?, ?, ?)"));
    TRY(statement.bind(series).bind(to_milliseconds(at)).bind(value).run());
  }
  const int64_t sequence = connection.last_row();
  if (uint64_t(sequence) % kTrimInterval != 0) return ok();
  auto statement = TRY(connection.prepare("DELETE FROM journal WHERE sequence <= ?"));
  return statement.bind(sequence - settings.points_max).run();
}

std::unique_ptr<PointJournal> make_journal(Database& database, KeyOfSeries key_of) {
  return std::make_unique<StoredJournal>(database, std::move(key_of));
}

}  // namespace trainyard::observe
