// Stores the names of metrics in the table `series` of the metrics' database, and the number of
// metrics of each group in `series_groups`.
//
// Ids are not reused, since the journal may still have points of a removed metric. Therefore the
// table `last_removed_series` has the highest id that was removed.
//
// Threads: functions as the connection; a SeriesIds is confined to the works of Database::write.
// Errors: those of sqlite/connection.hpp; corrupt.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "observe/database.hpp"
#include "observe/metrics.hpp"

namespace trainyard::observe {

inline constexpr const char* kSeriesSchema = R"(
  CREATE TABLE IF NOT EXISTS series (
    id INTEGER PRIMARY KEY, region BLOB NOT NULL, name_space BLOB NOT NULL, name BLOB NOT NULL,
    dimensions BLOB NOT NULL, five_minutes_to INTEGER NOT NULL DEFAULT 0,
    hours_to INTEGER NOT NULL DEFAULT 0, UNIQUE (region, name_space, name, dimensions));
  CREATE TABLE IF NOT EXISTS series_groups (
    name BLOB PRIMARY KEY, series INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS last_removed_series (
    id INTEGER PRIMARY KEY CHECK (id = 0), series INTEGER NOT NULL);
  INSERT OR IGNORE INTO last_removed_series VALUES (0, 0);)";

// Returns 0 if the metric is unknown.
Result<int64_t> find_series(Connection& connection, const MetricKey& key);
// Errors also: not_found.
Result<MetricKey> key_of_series(Connection& connection, int64_t series);
Result<std::vector<int64_t>> all_series(Connection& connection);
// Returns the metrics of a region. `name_space` and `name`: "" for any.
Result<std::vector<MetricKey>> list_series(Connection& connection, const std::string& region,
                                           const std::string& name_space, const std::string& name);
Result<void> remove_series(Connection& connection, int64_t series, const MetricSettings& settings);

// SeriesIds caches the ids of metrics, since appends use the same metrics repeatedly.
class SeriesIds {
 public:
  static constexpr size_t kCachedMax = 50'000;  // some 10 MB

  // Lifetime: the settings outlive it.
  explicit SeriesIds(const MetricSettings& settings) : settings_(settings) {}

  struct Ensured {
    int64_t id;
    bool cached;
  };
  // Returns the id of the metric. A new metric is stored. Errors also: exhausted with
  // MetricFault::too_many_series.
  Result<Ensured> ensure(Connection& connection, const MetricKey& key);
  // Caches an id whose transaction was committed.
  void remember(const MetricKey& key, int64_t id);
  // Removes all ids from the cache, after a metric was removed.
  void clear() { ids_.clear(); }

 private:
  Result<int64_t> insert(Connection& connection, const MetricKey& key);

  const MetricSettings& settings_;
  std::unordered_map<std::string, int64_t> ids_;  // by the bytes of the key
  std::string bytes_;                             // the bytes of the key that is looked up
};

}  // namespace trainyard::observe
