// Stores the journal of points in two tables of the metrics' database.
//
// Threads, errors: as point_journal.hpp. Lifetime: the database outlives the journal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.hpp"
#include "base/time.hpp"
#include "observe/database.hpp"
#include "observe/metrics.hpp"
#include "observe/point_journal.hpp"

namespace trainyard::observe {

// Creates the tables, adds new readers at the end of the journal, and removes former readers.
Result<void> prepare_journal(Database& database, const JournalSettings& settings);
// Adds a point. Call it in the transaction that stores the point.
Result<void> add_to_journal(Connection& connection, int64_t series, Instant at, double value,
                            const JournalSettings& settings);
// Returns the key of a series. Errors: not_found, if the series was removed.
using KeyOfSeries = std::function<Result<MetricKey>(Connection&, int64_t series)>;
std::unique_ptr<PointJournal> make_journal(Database& database, KeyOfSeries key_of);

}  // namespace trainyard::observe
