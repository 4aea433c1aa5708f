#include "observe/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/log.hpp"
#include "base/thread_safety.hpp"
#include "observe/database.hpp"
#include "observe/disk.hpp"
#include "observe/followed_metrics.hpp"
#include "observe/points/block_table.hpp"
#include "observe/points/migration.hpp"
#include "observe/points/periods.hpp"
#include "observe/points/point_batch.hpp"
#include "observe/points/point_head.hpp"
#include "observe/points/recent_table.hpp"
#include "observe/points/retention.hpp"
#include "observe/points/series_table.hpp"
#include "observe/stored_journal.hpp"

namespace trainyard::observe {
namespace {

constexpr int kMetricsVersion = 2;
constexpr const char* kMetricsFile = "/metrics.sqlite";
constexpr size_t kSaidMax = 10'000;  // groups whose limit is logged, in one process
// Recent points are sealed before their limit if a metric has 64 on average, since a seal that
// extends each block by many points costs little per point. At least a 16th of the limit is sealed.
constexpr size_t kSealedPerSeries = 64;
constexpr size_t kSealedPart = 16;
// Blocks that one transaction of retire() reads: appends wait for some 20 ms.
constexpr size_t kRetiredAtOnce = 256;

constexpr const char* kWriterSchema = R"(
  CREATE TABLE IF NOT EXISTS writers (
    name BLOB PRIMARY KEY, batch INTEGER NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID)";

// Samples with NaN or infinity are dropped, as on AWS.
bool is_finite(const Sample& sample) {
  return std::isfinite(sample.count) && std::isfinite(sample.sum) &&
         std::isfinite(sample.minimum) && std::isfinite(sample.maximum);
}

Result<int64_t> batch_of(Connection& connection, const std::string& writer) {
  auto statement = TRY(connection.prepare("SELECT batch FROM writers WHERE name = ?"));
  if (!TRY(statement.bind_bytes(writer).step())) return 0;
  return statement.integer(0);
}

// Samples of one metric within an append. Lifetime: key and samples are the caller's.
struct AppendedSeries {
  const MetricKey* key;
  std::span<const Sample> samples;
  int64_t series = 0;  // its id once the append has stored it; 0: it was left out
  bool cached = false;
};
using Appended = std::vector<AppendedSeries>;

Appended appended_of(const std::vector<MetricRecord>& records) {
  Appended all;
  all.reserve(records.size());
  for (const auto& [key, sample] : records) all.push_back({&key, {&sample, 1}});
  return all;
}

Result<void> check_units(const Appended& appended) {
  for (const AppendedSeries& each : appended)
    for (const Sample& sample : each.samples)
      if (sample.unit.size() > kUnitBytesMax)
        return invalid("the unit of a sample of " + each.key->name + " has more than " +
                       std::to_string(kUnitBytesMax) + " bytes");
  return ok();
}

Result<std::unique_ptr<Database>> open_database(const std::string& directory,
                                                const std::string& files) {
  const std::string schema =
      std::string(kSeriesSchema) + kBlockSchema + kRecentSchema + kWriterSchema;
  return Database::open(directory + kMetricsFile, kMetricsVersion, schema, files);
}

// Recent points are in memory (head_) and, by batches, in the table `recent`; older ones are in
// blocks. A seal moves all recent points into blocks, in one transaction.
//
// A read combines a snapshot of the database with head_. Memory changes after each commit, before
// the next transaction begins, so head_ lacks at most points that are not acknowledged yet. Around
// a seal, the number of seals in the snapshot tells which of both has the points: an equal one,
// both have their own; a greater one, head_ has only points that are in the snapshot's blocks; a
// smaller one, the snapshot is too old and is taken again.
class MetricFile final : public Metrics {
 public:
  MetricFile(std::unique_ptr<Database> database, const MetricSettings& settings,
             const MetricFollowers& followers)
      : database_(std::move(database)),
        settings_(settings),
        followers_(followers),
        ids_(settings_) {
    if (!followers_.journal.readers.empty()) journal_ = make_journal(*database_, key_of_series);
  }

  PointJournal* journal() const { return journal_.get(); }

  // Reads the recent points into memory. Called before all others.
  Result<void> load() {
    return database_->write([&](Connection& connection) -> Result<void> {
      const MutexLock lock(mutex_);
      seals_ = TRY(number_of_seals(connection));
      TRY(load_recent(connection, head_).in("reading the recent points"));
      return ok();
    });
  }

  Result<void> append(const std::vector<MetricRecord>& records) override {
    if (records.empty()) return ok();
    Appended appended = appended_of(records);
    return write(appended,
                 [&](Connection& connection) { return insert_all(connection, appended); });
  }

  Result<uint64_t> append_allowed(const std::vector<MetricRecord>& records) override {
    return append_allowed(appended_of(records));
  }

  Result<uint64_t> append_series_allowed(const std::vector<MetricSeries>& series) override {
    Appended appended;
    appended.reserve(series.size());
    for (const auto& [key, samples] : series) appended.push_back({&key, samples});
    return append_allowed(std::move(appended));
  }

  Result<void> append_batch(const std::string& writer, uint64_t batch,
                            const std::vector<MetricRecord>& records) override {
    Appended appended = appended_of(records);
    return write(appended, [&](Connection& connection) -> Result<void> {
      if (int64_t(batch) <= TRY(batch_of(connection, writer))) return ok();
      TRY(insert_allowed(connection, appended));
      Instant used{};
      for (const auto& record : records) used = std::max(used, record.sample.at);
      auto statement = TRY(connection.prepare(
          "INSERT INTO writers VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET "
          "batch = ?2, used = max(used, ?3)"));
      return statement.bind_bytes(writer).bind(int64_t(batch)).bind(to_milliseconds(used)).run();
    });
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
    if (query.period <= 0ms) return invalid("invalid period: it must be positive");
    PeriodJoiner joiner(to_milliseconds(query.from), query.period.count());
    TRY(read_samples(query, [&](const Sample& sample) -> Result<void> {
      joiner.add(sample);
      return ok();
    }));
    return joiner.finish();
  }

  Result<std::vector<Sample>> samples(const StatisticsQuery& query, size_t count_max) override {
    std::vector<Sample> samples;
    TRY(read_samples(query, [&](const Sample& sample) -> Result<void> {
      if (samples.size() == count_max)
        return exhausted("the metric has more than " + std::to_string(count_max) +
                         " samples in this time range");
      samples.push_back(sample);
      return ok();
    }));
    return samples;
  }

  Result<std::optional<Sample>> last(const MetricKey& key) override {
    std::optional<Sample> found;
    TRY(read_snapshot([&](Connection& connection, const ReadHead& read_head) -> Result<bool> {
      const int64_t series = TRY(find_series(connection, key));
      if (series == 0) return true;
      std::optional<Sample> recent;
      if (!TRY(read_head([&](PointHead& head) { recent = head.last(series); }))) return false;
      found = TRY(last_point(connection, series));
      if (recent && (!found || recent->at >= found->at)) found = std::move(recent);
      return true;
    }));
    return found;
  }

  Result<std::vector<MetricKey>> list(const std::string& region, const std::string& name_space,
                                      const std::string& name) override {
    std::vector<MetricKey> keys;
    TRY(database_->read([&](Connection& connection) -> Result<void> {
      keys = TRY(list_series(connection, region, name_space, name));
      return ok();
    }));
    return keys;
  }

  Result<void> retire(Instant now) override {
    std::vector<int64_t> all;
    TRY(database_->read([&](Connection& connection) -> Result<void> {
      all = TRY(all_series(connection));
      return ok();
    }));
    // Several transactions, so that appends can run in between.
    for (std::span<const int64_t> left = all; !left.empty();) TRY(retire_some(now, left));
    return database_->write([&](Connection& connection) -> Result<void> {
      auto statement = TRY(connection.prepare("DELETE FROM writers WHERE used < ?"));
      return statement.bind(to_milliseconds(now - settings_.raw_time)).run();
    });
  }

 private:
  // Retires the first ones of `left` and removes them from it.
  Result<void> retire_some(Instant now, std::span<const int64_t>& left) {
    int64_t seals = 0;
    size_t done = 0;
    return database_->write(
        [&](Connection& connection) -> Result<void> {
          seals = TRY(seal_recent(connection));
          for (size_t blocks = kRetiredAtOnce; blocks > 0 && done < left.size(); ++done) {
            const int64_t series = left[done];
            if (!TRY(retire_points(connection, series, now, settings_, blocks))) break;
            if (TRY(has_points(connection, series))) continue;
            TRY(remove_series(connection, series, settings_));
            ids_.clear();
          }
          return ok();
        },
        [&] {
          left = left.subspan(done);
          ids_.clear();
          note_seal(seals);
        });
  }

  // Runs `insert` in a transaction, then adds what it has stored to memory.
  Result<void> write(Appended& appended, const Database::Work& insert) {
    TRY(check_units(appended));
    TRY(make_space());
    TRY(database_->write(insert, [&] { note_append(appended); }));
    report(appended);
    return ok();
  }

  Result<uint64_t> append_allowed(Appended appended) {
    uint64_t left_out = 0;
    TRY(write(appended, [&](Connection& connection) -> Result<void> {
      left_out = TRY(insert_allowed(connection, appended));
      return ok();
    }));
    return left_out;
  }

  Result<void> insert_all(Connection& connection, Appended& appended) {
    PointBatch batch;
    for (AppendedSeries& each : appended) TRY(insert(connection, each, batch));
    return batch.empty() ? ok() : add_recent(connection, batch.finish());
  }

  // Inserts all but the points of metrics that exceed the limit of their group, and returns how
  // many it left out.
  Result<uint64_t> insert_allowed(Connection& connection, Appended& appended) {
    PointBatch batch;
    uint64_t left_out = 0;
    for (AppendedSeries& each : appended) {
      const auto inserted = insert(connection, each, batch);
      if (inserted) continue;
      if (!inserted.error().is(MetricFault::too_many_series)) return inserted.error();
      left_out += uint64_t(std::ranges::count_if(each.samples, is_finite));
      if (said_.size() < kSaidMax && said_.insert(settings_.group_of(*each.key)).second)
        log(Level::warning, "observe", "leaving out points of further metrics",
            {{"why", inserted.error().message}});
    }
    if (!batch.empty()) TRY(add_recent(connection, batch.finish()));
    return left_out;
  }

  Result<void> insert(Connection& connection, AppendedSeries& appended, PointBatch& batch) {
    if (std::ranges::none_of(appended.samples, is_finite)) return ok();
    const auto [series, cached] = TRY(ids_.ensure(connection, *appended.key));
    appended.series = series;
    appended.cached = cached;
    const JournalSettings& journal = followers_.journal;
    const bool journaled = journal_ && (!journal.wanted || journal.wanted(*appended.key));
    for (const Sample& sample : appended.samples) {
      if (!is_finite(sample)) continue;
      batch.add(series, sample);
      if (journaled && sample.count > 0)
        TRY(add_to_journal(connection, series, sample.at, sample.sum / sample.count, journal));
    }
    return ok();
  }

  // Called after the commit of an append.
  void note_append(const Appended& appended) {
    const MutexLock lock(mutex_);
    for (const AppendedSeries& each : appended) {
      if (each.series == 0) continue;
      if (!each.cached) ids_.remember(*each.key, each.series);
      for (const Sample& sample : each.samples)
        if (is_finite(sample)) head_.add(each.series, sample);
    }
  }

  // Called after the commit of a transaction that has sealed the points before it.
  void note_seal(int64_t seals) {
    const MutexLock lock(mutex_);
    if (seals == seals_) return;
    head_.clear();
    seals_ = seals;
  }

  void report(const Appended& appended) const {
    if (!followers_.appended) return;
    for (const AppendedSeries& each : appended) {
      if (each.series == 0) continue;
      if (std::ranges::all_of(each.samples, is_finite)) {
        followers_.appended(*each.key, each.samples);
        continue;
      }
      std::vector<Sample> kept;
      std::ranges::copy_if(each.samples, std::back_inserter(kept), is_finite);
      followers_.appended(*each.key, kept);
    }
  }

  bool is_full() {
    const MutexLock lock(mutex_);
    const size_t points = head_.size();
    return points >= settings_.recent_points_max ||
           (points >= settings_.recent_points_max / kSealedPart &&
            points >= kSealedPerSeries * head_.series_count());
  }

  // Seals the recent points if they have reached their limit. An error is returned only when they
  // have reached twice the limit, and logged before.
  Result<void> make_space() {
    if (!is_full()) return ok();
    int64_t seals = 0;
    auto sealed = database_->write(
        [&](Connection& connection) -> Result<void> {
          // Another append may have sealed them meanwhile.
          seals = TRY(is_full() ? seal_recent(connection) : number_of_seals(connection));
          return ok();
        },
        [&] { note_seal(seals); });
    if (sealed) return ok();
    {
      const MutexLock lock(mutex_);
      if (head_.size() >= 2 * settings_.recent_points_max)
        return std::move(sealed).in("moving recent points into blocks");
    }
    log(Level::error, "observe", "cannot move recent points into blocks",
        {{"why", sealed.error().message}});
    return ok();
  }

  // Calls its argument with the points in memory that the snapshot's blocks do not have. False: the
  // snapshot is too old.
  using ReadHead = std::function<Result<bool>(const std::function<void(PointHead&)>&)>;
  // Runs `work` on a snapshot, and again if it returns false.
  Result<void> read_snapshot(
      const std::function<Result<bool>(Connection&, const ReadHead&)>& work) {
    for (bool done = false; !done;)
      TRY(database_->read([&](Connection& connection) -> Result<void> {
        done = TRY(work(connection, [&](const std::function<void(PointHead&)>& take) {
          return read_head(connection, take);
        }));
        return ok();
      }));
    return ok();
  }

  Result<bool> read_head(Connection& connection, const std::function<void(PointHead&)>& take) {
    const int64_t seals = TRY(number_of_seals(connection));
    const MutexLock lock(mutex_);
    if (seals == seals_) take(head_);
    return seals >= seals_;
  }

  // Calls `take` for each sample of the query, in the order of time and appends.
  Result<void> read_samples(const StatisticsQuery& query, const TakeSample& take) {
    const int64_t from = to_milliseconds(query.from), to = to_milliseconds(query.to);
    const auto take_wanted = [&](const Sample& sample) {
      return query.unit.empty() || sample.unit == query.unit ? take(sample) : ok();
    };
    return read_snapshot([&](Connection& connection, const ReadHead& read_head) -> Result<bool> {
      const int64_t series = TRY(find_series(connection, query.key));
      if (series == 0) return true;
      std::vector<Sample> recent;
      if (!TRY(read_head([&](PointHead& head) { recent = head.samples(series, from, to); })))
        return false;
      size_t next = 0;  // recent samples come after those of the same time in blocks
      TRY(read_points(connection, series, from, to, [&](const Sample& sample) -> Result<void> {
        while (next < recent.size() && recent[next].at < sample.at)
          TRY(take_wanted(recent[next++]));
        return take_wanted(sample);
      }));
      while (next < recent.size()) TRY(take_wanted(recent[next++]));
      return true;
    });
  }

  const std::unique_ptr<Database> database_;
  const MetricSettings settings_;
  const MetricFollowers followers_;
  std::unique_ptr<PointJournal> journal_;  // nullptr: unused
  // Used within works of database_->write and their commits only.
  SeriesIds ids_;
  std::set<std::string> said_;  // groups whose limit was logged

  Mutex mutex_;
  PointHead head_ GUARDED_BY(mutex_);
  int64_t seals_ GUARDED_BY(mutex_) = 0;  // before the points in head_
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

Result<uint64_t> downgrade_metrics(const std::string& directory, const std::string& files) {
  if (!os::exists(directory + kMetricsFile)) return 0;
  const auto database = TRY(open_database(directory, files));
  return TRY(convert_points_back(*database).in("converting the points of metrics to version 1"));
}

Result<FollowedMetrics> open_followed_metrics(const std::string& directory,
                                              const MetricSettings& settings,
                                              const MetricFollowers& followers) {
  TRY(os::make_directories(directory));
  auto database = TRY(open_database(directory, settings.files));
  TRY(os::sync_directory(directory));
  TRY(convert_points(*database).in("converting the points of metrics"));
  TRY(prepare_journal(*database, followers.journal));
  auto file = std::make_unique<MetricFile>(std::move(database), settings, followers);
  TRY(file->load());
  PointJournal* const journal = file->journal();
  return FollowedMetrics{std::move(file), journal};
}

}  // namespace trainyard::observe
