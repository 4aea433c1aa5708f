#include "observe/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/json.hpp"
#include "base/log.hpp"
#include "observe/database.hpp"
#include "observe/disk.hpp"
#include "observe/followed_metrics.hpp"
#include "observe/stored_journal.hpp"

namespace trainyard::observe {
namespace {

constexpr int kMetricsVersion = 1;
constexpr size_t kSaidMax = 10'000;  // groups whose limit is logged, in one process

// Points are ordered by series and time, so that a query reads consecutive pages. Several may have
// one instant.
constexpr const char* kMetricsSchema = R"(
  CREATE TABLE IF NOT EXISTS series (
    id INTEGER PRIMARY KEY, region BLOB NOT NULL, name_space BLOB NOT NULL, name BLOB NOT NULL,
    dimensions BLOB NOT NULL, five_minutes_to INTEGER NOT NULL DEFAULT 0, hours_to INTEGER NOT NULL DEFAULT 0,
    UNIQUE (region, name_space, name, dimensions));
  CREATE TABLE IF NOT EXISTS points (
    series INTEGER NOT NULL, at INTEGER NOT NULL, sequence INTEGER NOT NULL, unit BLOB NOT NULL,
    count REAL NOT NULL, sum REAL NOT NULL, minimum REAL NOT NULL, maximum REAL NOT NULL,
    PRIMARY KEY (series, at, sequence)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS writers (
    name BLOB PRIMARY KEY, batch INTEGER NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS series_groups (
    name BLOB PRIMARY KEY, series INTEGER NOT NULL) WITHOUT ROWID)";

// Equal dimensions have equal bytes, since the map is ordered.
std::string to_bytes(const std::map<std::string, std::string>& dimensions) {
  Json pairs = Json::array();
  for (const auto& [name, value] : dimensions) pairs.push_back({name, value});
  return dump(pairs);
}

Result<std::map<std::string, std::string>> to_dimensions(const std::string& bytes) {
  const auto pairs = TRY(parse_json(bytes));
  std::map<std::string, std::string> dimensions;
  for (const auto& pair : pairs) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
      return corrupt("dimensions of a metric: " + dump(pair));
    dimensions.emplace(pair[0].get<std::string>(), pair[1].get<std::string>());
  }
  return dimensions;
}

// Returns 0 if there is none.
Result<int64_t> find_series(Connection& connection, const MetricKey& key,
                            const std::string& dimensions) {
  auto statement = TRY(connection.prepare(
      "SELECT id FROM series WHERE region = ? AND name_space = ? AND name = ? AND dimensions = ?"));
  if (!TRY(statement.bind_bytes(key.region)
               .bind_bytes(key.name_space)
               .bind_bytes(key.name)
               .bind_bytes(dimensions)
               .step()))
    return 0;
  return statement.integer(0);
}

Result<MetricKey> key_of_series(Connection& connection, int64_t series) {
  auto statement = TRY(
      connection.prepare("SELECT region, name_space, name, dimensions FROM series WHERE id = ?"));
  if (!TRY(statement.bind(series).step())) return not_found("a metric that was removed");
  MetricKey key;
  key.region = statement.bytes(0);
  key.name_space = statement.bytes(1);
  key.name = statement.bytes(2);
  key.dimensions = TRY(to_dimensions(statement.bytes(3)));
  return key;
}

// Counts a new series of a group. Errors: exhausted.
Result<void> join_group(Connection& connection, const std::string& group, int64_t series_max) {
  {
    auto statement = TRY(connection.prepare("SELECT series FROM series_groups WHERE name = ?"));
    if (TRY(statement.bind_bytes(group).step()) && statement.integer(0) >= series_max)
      return exhausted("more than " + std::to_string(series_max) + " metrics of " + group,
                       MetricFault::too_many_series);
  }
  auto statement = TRY(connection.prepare(
      "INSERT INTO series_groups VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET series = series + "
      "1"));
  return statement.bind_bytes(group).run();
}

Result<int64_t> ensure_series(Connection& connection, const MetricKey& key,
                              const MetricSettings& settings) {
  const auto dimensions = to_bytes(key.dimensions);
  if (const int64_t found = TRY(find_series(connection, key, dimensions))) return found;
  if (settings.group_of)
    if (const std::string group = settings.group_of(key); !group.empty())
      TRY(join_group(connection, group, settings.group_series_max));
  auto statement = TRY(connection.prepare(
      "INSERT INTO series (region, name_space, name, dimensions) VALUES (?, ?, ?, ?)"));
  TRY(statement.bind_bytes(key.region)
          .bind_bytes(key.name_space)
          .bind_bytes(key.name)
          .bind_bytes(dimensions)
          .run());
  return connection.last_row();
}

// Samples with NaN or infinity are dropped, as on AWS.
bool is_finite(const Sample& sample) {
  return std::isfinite(sample.count) && std::isfinite(sample.sum) &&
         std::isfinite(sample.minimum) && std::isfinite(sample.maximum);
}

Result<void> insert(Connection& connection, int64_t series, const Sample& sample) {
  auto statement = TRY(connection.prepare(
      "INSERT INTO points SELECT ?1, ?2, coalesce(max(sequence) + 1, 0), ?3, ?4, "
      "?5, ?6, ?7 FROM points WHERE series = ?1 AND at = ?2"));
  return statement.bind(series)
      .bind(to_milliseconds(sample.at))
      .bind_bytes(sample.unit)
      .bind(sample.count)
      .bind(sample.sum)
      .bind(sample.minimum)
      .bind(sample.maximum)
      .run();
}

// Reads a row with at, count, sum, minimum, maximum and unit.
Sample sample_in(const Statement& statement) {
  return {.at = from_milliseconds(statement.integer(0)),
          .count = statement.real(1),
          .sum = statement.real(2),
          .minimum = statement.real(3),
          .maximum = statement.real(4),
          .unit = statement.bytes(5)};
}

Result<int64_t> batch_of(Connection& connection, const std::string& writer) {
  auto statement = TRY(connection.prepare("SELECT batch FROM writers WHERE name = ?"));
  if (!TRY(statement.bind_bytes(writer).step())) return 0;
  return statement.integer(0);
}

class MetricFile final : public Metrics {
 public:
  MetricFile(std::unique_ptr<Database> database, const MetricSettings& settings,
             const MetricFollowers& followers)
      : database_(std::move(database)), settings_(settings), followers_(followers) {
    if (!followers_.journal.readers.empty()) journal_ = make_journal(*database_, key_of_series);
  }

  PointJournal* journal() const { return journal_.get(); }

  Result<void> append(const std::vector<MetricRecord>& records) override {
    if (records.empty()) return ok();
    std::vector<MetricRecord> kept;
    TRY(database_->write([&](Connection& connection) -> Result<void> {
      for (const auto& [key, sample] : records) {
        if (!is_finite(sample)) continue;
        TRY(keep(connection, key, TRY(ensure_series(connection, key, settings_)), sample));
        if (followers_.appended) kept.push_back({key, sample});
      }
      return ok();
    }));
    report(kept);
    return ok();
  }

  Result<uint64_t> append_allowed(const std::vector<MetricRecord>& records) override {
    uint64_t left_out = 0;
    std::vector<MetricRecord> kept;
    TRY(database_->write([&](Connection& connection) -> Result<void> {
      left_out = TRY(insert_allowed(connection, records, kept));
      return ok();
    }));
    report(kept);
    return left_out;
  }

  Result<void> append_batch(const std::string& writer, uint64_t batch,
                            const std::vector<MetricRecord>& records) override {
    std::vector<MetricRecord> kept;
    TRY(database_->write([&](Connection& connection) -> Result<void> {
      if (int64_t(batch) <= TRY(batch_of(connection, writer))) return ok();
      TRY(insert_allowed(connection, records, kept));
      Instant used{};
      for (const auto& record : records) used = std::max(used, record.sample.at);
      auto statement = TRY(connection.prepare(
          "INSERT INTO writers VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET "
          "batch = ?2, used = max(used, ?3)"));
      return statement.bind_bytes(writer).bind(int64_t(batch)).bind(to_milliseconds(used)).run();
    }));
    report(kept);
    return ok();
  }

  Result<uint64_t> last_batch(const std::string& writer) override {
    uint64_t batch = 0;
    TRY(database_->read([&](Connection& connection) -> Result<void> {
      batch = uint64_t(TRY(batch_of(connection, writer)));
      return ok();
    }));
    return batch;
  }

  Result<std::vector<Datapoint>> statistics(const StatisticsQuery& query) override {
    if (query.period <= 0ms) return invalid("the period must be positive");
    std::vector<Datapoint> points;
    TRY(database_->read([&](Connection& connection) -> Result<void> {
      const int64_t series =
          TRY(find_series(connection, query.key, to_bytes(query.key.dimensions)));
      if (series == 0) return ok();
      auto statement = TRY(connection.prepare(
          "SELECT (at - ?3) / ?1 * ?1 + ?3 AS start, unit, sum(count), sum(sum), min(minimum), "
          "max(maximum) FROM points "
          "WHERE series = ?2 AND at >= ?3 AND at < ?4 AND (?5 = x'' OR unit = ?5) "
          "GROUP BY start, unit ORDER BY start, unit"));
      statement.bind(int64_t(query.period.count()))
          .bind(series)
          .bind(to_milliseconds(query.from))
          .bind(to_milliseconds(query.to))
          .bind_bytes(query.unit);
      while (TRY(statement.step()))
        points.push_back({.at = from_milliseconds(statement.integer(0)),
                          .count = statement.real(2),
                          .sum = statement.real(3),
                          .minimum = statement.real(4),
                          .maximum = statement.real(5),
                          .unit = statement.bytes(1)});
      return ok();
    }));
    return points;
  }

  Result<std::vector<Sample>> samples(const StatisticsQuery& query, size_t count_max) override {
    std::vector<Sample> samples;
    TRY(database_->read([&](Connection& connection) -> Result<void> {
      const int64_t series =
          TRY(find_series(connection, query.key, to_bytes(query.key.dimensions)));
      if (series == 0) return ok();
      auto statement =
          TRY(connection.prepare("SELECT at, count, sum, minimum, maximum, unit FROM points WHERE "
                                 "series = ?1 AND at >= ?2 "
                                 "AND at < ?3 AND (?4 = x'' OR unit = ?4) ORDER BY at, sequence"));
      statement.bind(series)
          .bind(to_milliseconds(query.from))
          .bind(to_milliseconds(query.to))
          .bind_bytes(query.unit);
      while (TRY(statement.step())) {
        if (samples.size() == count_max)
          return exhausted("the metric has more than " + std::to_string(count_max) +
                           " samples in that time");
        samples.push_back(sample_in(statement));
      }
      return ok();
    }));
    return samples;
  }

  Result<std::optional<Sample>> last(const MetricKey& key) override {
    std::optional<Sample> found;
    TRY(database_->read([&](Connection& connection) -> Result<void> {
      const int64_t series = TRY(find_series(connection, key, to_bytes(key.dimensions)));
      auto statement = TRY(connection.prepare(
          "SELECT at, count, sum, minimum, maximum, unit FROM points WHERE series = ? "
          "ORDER BY at DESC, sequence DESC LIMIT 1"));
      if (TRY(statement.bind(series).step())) found = sample_in(statement);
      return ok();
    }));
    return found;
  }

  Result<std::vector<MetricKey>> list(const std::string& region, const std::string& name_space,
                                      const std::string& name) override {
    std::vector<MetricKey> keys;
    TRY(database_->read([&](Connection& connection) -> Result<void> {
      auto statement = TRY(connection.prepare(
          "SELECT name_space, name, dimensions FROM series WHERE region = ?1 AND (?2 "
          "= x'' OR name_space = ?2) AND (?3 = x'' OR name = ?3) "
          "ORDER BY name_space, name, dimensions"));
      statement.bind_bytes(region).bind_bytes(name_space).bind_bytes(name);
      while (TRY(statement.step()))
        keys.push_back({region, statement.bytes(0), statement.bytes(1),
                        TRY(to_dimensions(statement.bytes(2)))});
      return ok();
    }));
    return keys;
  }

  Result<void> retire(Instant now) override {
    std::vector<int64_t> all;
    TRY(database_->read([&](Connection& connection) -> Result<void> {
      auto statement = TRY(connection.prepare("SELECT id FROM series"));
      while (TRY(statement.step())) all.push_back(statement.integer(0));
      return ok();
    }));
    // One transaction per series, so that appends can run in between.
    for (const int64_t series : all)
      TRY(database_->write([&](Connection& connection) -> Result<void> {
        TRY(thin_out(connection, series, "five_minutes_to", 5min, now - settings_.raw_time));
        TRY(thin_out(connection, series, "hours_to", 1h, now - settings_.five_minutes_time));
        return forget(connection, series, now - settings_.hours_time, settings_);
      }));
    return database_->write([&](Connection& connection) -> Result<void> {
      auto statement = TRY(connection.prepare("DELETE FROM writers WHERE used < ?"));
      return statement.bind(to_milliseconds(now - settings_.raw_time)).run();
    });
  }

 private:
  // Joins the points up to `to` to one per period and unit. `column` holds the end of the part that
  // was joined before.
  static Result<void> thin_out(Connection& connection, int64_t series, const std::string& column,
                               Duration period, Instant to) {
    const int64_t step = period.count();
    const int64_t end = to_milliseconds(to) / step * step;
    struct Joined {
      int64_t at;
      std::string unit;
      double numbers[4];
    };
    std::vector<Joined> joined;
    const std::string select = "SELECT " + column + " FROM series WHERE id = ?";
    int64_t begin;
    {
      auto statement = TRY(connection.prepare(select));
      if (!TRY(statement.bind(series).step())) return ok();
      begin = statement.integer(0);
    }
    if (begin >= end) return ok();
    {
      auto statement = TRY(connection.prepare(
          "SELECT (at / ?1) * ?1 AS start, unit, sum(count), sum(sum), min(minimum), max(maximum) "
          "FROM points WHERE series = ?2 AND at >= ?3 AND at < ?4 GROUP BY start, unit ORDER BY "
          "start, unit"));
      statement.bind(step).bind(series).bind(begin).bind(end);
      while (TRY(statement.step()))
        joined.push_back(
            {statement.integer(0),
             statement.bytes(1),
             {statement.real(2), statement.real(3), statement.real(4), statement.real(5)}});
    }
    {
      auto statement =
          TRY(connection.prepare("DELETE FROM points WHERE series = ? AND at >= ? AND at < ?"));
      TRY(statement.bind(series).bind(begin).bind(end).run());
    }
    for (size_t i = 0; i < joined.size(); ++i) {
      const auto& point = joined[i];
      const int64_t sequence = i > 0 && joined[i - 1].at == point.at ? int64_t(i) : 0;
      auto statement =
          TRY(connection.prepare("INSERT INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
      statement.bind(series).bind(point.at).bind(sequence).bind_bytes(point.unit);
      for (const double number : point.numbers) statement.bind(number);
      TRY(statement.run());
    }
    const std::string update = "UPDATE series SET " + column + " = ? WHERE id = ?";
    auto statement = TRY(connection.prepare(update));
    return statement.bind(end).bind(series).run();
  }

  // Removes points before `before`, and the series if no point is left.
  static Result<void> forget(Connection& connection, int64_t series, Instant before,
                             const MetricSettings& settings) {
    {
      auto statement = TRY(connection.prepare("DELETE FROM points WHERE series = ? AND at < ?"));
      TRY(statement.bind(series).bind(to_milliseconds(before)).run());
    }
    {
      auto statement = TRY(connection.prepare("SELECT 1 FROM points WHERE series = ? LIMIT 1"));
      if (TRY(statement.bind(series).step())) return ok();
    }
    TRY(leave_group(connection, series, settings));
    auto statement = TRY(connection.prepare("DELETE FROM series WHERE id = ?"));
    return statement.bind(series).run();
  }

  static Result<void> leave_group(Connection& connection, int64_t series,
                                  const MetricSettings& settings) {
    if (!settings.group_of) return ok();
    const auto key = key_of_series(connection, series);
    if (!key) return key.error().kind == Kind::not_found ? ok() : Result<void>(key.error());
    const std::string group = settings.group_of(*key);
    {
      auto statement =
          TRY(connection.prepare("UPDATE series_groups SET series = series - 1 WHERE name = ?"));
      TRY(statement.bind_bytes(group).run());
    }
    auto statement =
        TRY(connection.prepare("DELETE FROM series_groups WHERE name = ? AND series <= 0"));
    return statement.bind_bytes(group).run();
  }

  Result<void> keep(Connection& connection, const MetricKey& key, int64_t series,
                    const Sample& sample) const {
    TRY(insert(connection, series, sample));
    const JournalSettings& journal = followers_.journal;
    if (!journal_ || sample.count <= 0 || (journal.wanted && !journal.wanted(key))) return ok();
    return add_to_journal(connection, series, sample.at, sample.sum / sample.count, journal);
  }

  void report(const std::vector<MetricRecord>& kept) const {
    if (followers_.appended && !kept.empty()) followers_.appended(kept);
  }

  // Inserts all but the points of metrics that exceed the limit of their group, and returns how
  // many it left out. Adds what it inserts to `kept`, if that is reported.
  Result<uint64_t> insert_allowed(Connection& connection, const std::vector<MetricRecord>& records,
                                  std::vector<MetricRecord>& kept) {
    uint64_t left_out = 0;
    for (const auto& [key, sample] : records) {
      if (!is_finite(sample)) continue;
      const auto series = ensure_series(connection, key, settings_);
      if (!series && !series.error().is(MetricFault::too_many_series)) return series.error();
      if (series) {
        TRY(keep(connection, key, *series, sample));
        if (followers_.appended) kept.push_back({key, sample});
        continue;
      }
      ++left_out;
      if (said_.size() < kSaidMax && said_.insert(settings_.group_of(key)).second)
        log(Level::warning, "observe", "points of further metrics are left out",
            {{"why", series.error().message}});
    }
    return left_out;
  }

  const std::unique_ptr<Database> database_;
  const MetricSettings settings_;
  const MetricFollowers followers_;
  std::unique_ptr<PointJournal> journal_;  // nullptr: unused
  std::set<std::string> said_;             // groups whose limit was logged; used within writes only
};

}  // namespace

Sample sample_of(Instant at, double value, std::string unit) {
  return {.at = at,
          .count = 1,
          .sum = value,
          .minimum = value,
          .maximum = value,
          .unit = std::move(unit)};
}

Result<std::unique_ptr<Metrics>> open_metrics(const std::string& directory,
                                              const MetricSettings& settings) {
  return TRY(open_followed_metrics(directory, settings, {})).metrics;
}

Result<FollowedMetrics> open_followed_metrics(const std::string& directory,
                                              const MetricSettings& settings,
                                              const MetricFollowers& followers) {
  TRY(os::make_directories(directory));
  auto database =
      TRY(Database::open(directory + "/metrics.sqlite", kMetricsVersion, kMetricsSchema));
  TRY(os::sync_directory(directory));
  TRY(prepare_journal(*database, followers.journal));
  auto file = std::make_unique<MetricFile>(std::move(database), settings, followers);
  PointJournal* const journal = file->journal();
  return FollowedMetrics{std::move(file), journal};
}

}  // namespace trainyard::observe
