// Converts the points of version 1 of the metrics' database, one row each, into blocks.
//
// Threads: called before the database is used. Errors: those of sqlite/connection.hpp.
#pragma once

#include "base/result.hpp"
#include "observe/database.hpp"

namespace trainyard::observe {

// Converts points in transactions of a limited size, which remove the converted rows: after a
// crash, the next call continues. Does nothing if the table `points` is missing.
Result<void> convert_points(Database& database);

}  // namespace trainyard::observe
