// Aggregates old points of a metric to one per period and unit, and removes older points.
//
// Threads: as the connection, within Database::write. Errors: those of sqlite/connection.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "base/time.hpp"
#include "observe/database.hpp"
#include "observe/metrics.hpp"

namespace trainyard::observe {

// Aggregates and removes points as the settings say, and reads about `blocks` blocks at most.
// Returns false if more must be read; the next call then continues. Subtracts the number of blocks
// that it read, at least one, from `blocks`. Requires: blocks > 0.
Result<bool> retire_points(Connection& connection, int64_t series, Instant now,
                           const MetricSettings& settings, size_t& blocks);

}  // namespace trainyard::observe
