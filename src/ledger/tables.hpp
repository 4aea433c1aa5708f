// The ledger's tables in SQLite: made where there are none, and brought to the present where an older server left them.
// What they mean is in docs/formats/ledger.md. Private to this room.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {

inline constexpr int64_t kNoBatchStatus = -1;  // of jobs that are not Batch's

// Errors: conflict, when the database is another program's, or a newer version's.
Result<void> make_tables(sqlite::Connection& connection);

}  // namespace trainyard::ledger
