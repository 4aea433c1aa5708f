// Joins old points of a metric to one per period and unit, and removes older ones.
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

// Joins and removes points as the settings say, and returns false if `blocks` were not enough: it
// then continues with the next call. Subtracts from `blocks` how many it read, at least one.
// Requires: blocks > 0.
Result<bool> retire_points(Connection& connection, int64_t series, Instant now,
                           const MetricSettings& settings, size_t& blocks);

}  // namespace trainyard::observe
