// The ledger's tables in SQLite: made where there are none, and brought to the present where an older server left them.
// What they mean is in docs/formats/ledger.md. Private to this room.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {

inline constexpr int64_t kNoBatchStatus = -1;  // of jobs that are not Batch's

// Before a database of an earlier version is changed, a copy of it is made beside it (copy_path()).
// `path`: of the database's file. Errors: conflict, when the database is another program's, or a newer version's; what
// the copy cannot be made for (a full disk): then nothing was changed.
Result<void> make_tables(sqlite::Connection& connection, const std::string& path);

// Errors: conflict, when the database is another program's.
Result<void> check_application(sqlite::Connection& connection);
// Writes all of the database to another file, in the place of what was there.
Result<void> copy_ledger(sqlite::Connection& connection, const std::string& copy);

// "ledger.db.version-3": the database as it was before a server brought it from version 3 to its own.
std::string copy_path(const std::string& path, int64_t version);

}  // namespace trainyard::ledger
