// Stores recent appends in the table `recent`, one row each, until they are sealed: moved into
// blocks.
//
// The table `seals` counts the seals, so that a reader can determine whether points in memory are
// also in the blocks of its snapshot.
//
// A row that cannot be decoded is moved to the table `corrupt_recent`, and logged.
//
// Threads: as the connection. Functions that change rows run within Database::write. Errors: those
// of sqlite/connection.hpp; corrupt, for the table `seals`.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "observe/database.hpp"
#include "observe/points/point_head.hpp"

namespace trainyard::observe {

inline constexpr const char* kRecentSchema = R"(
  CREATE TABLE IF NOT EXISTS recent (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS corrupt_recent (id INTEGER NOT NULL, data BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS seals (
    id INTEGER PRIMARY KEY CHECK (id = 0), number INTEGER NOT NULL);
  INSERT OR IGNORE INTO seals VALUES (0, 0);)";

// Adds a row: a batch of points (point_batch.hpp).
Result<void> add_recent(Connection& connection, const std::string& batch);
// Reads all rows in the order of the appends. Returns the number of rows that it moved to
// `corrupt_recent`.
Result<size_t> load_recent(Connection& connection, PointHead& head);
Result<int64_t> number_of_seals(Connection& connection);
// Moves all points into blocks. Returns the new number of seals.
Result<int64_t> seal_recent(Connection& connection);

}  // namespace trainyard::observe
