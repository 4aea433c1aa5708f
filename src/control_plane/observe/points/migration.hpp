// Converts the points of the metrics' database from version 1, which has one row for each, into
// blocks, and back.
//
// Both move points in transactions of a limited size: after a crash, the next call of either
// continues from what it finds.
//
// Threads: called while the database is not used otherwise. Errors: those of sqlite/connection.hpp.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "observe/database.hpp"

namespace trainyard::observe {

// Does nothing if the table `points` is missing.
Result<void> convert_points(Database& database);

// Converts blocks and recent points into rows. Remote writes begin again with new points: the
// journal of what they have sent is removed. Corrupt blocks are set aside. Returns the number of
// points.
Result<uint64_t> convert_points_back(Database& database);

}  // namespace trainyard::observe
