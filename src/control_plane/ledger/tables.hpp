// Creates the ledger's tables in SQLite, and migrates those of an older server.
// docs/formats/ledger.md describes them. Private to this module.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {

inline constexpr int64_t kNoStage = -1;  // batch_status of jobs that are in no queue

// Creates the tables, or migrates those of an earlier version; before that it makes a copy next to
// the file (copy_path()). `path` is the database file. Errors: conflict, if the database belongs to
// another program or a newer version; the error that prevents the copy (a full disk). After an
// error nothing has changed.
Result<void> make_tables(sqlite::Connection& connection, const std::string& path);

// Returns the version of the tables that this program creates.
int64_t file_version();
// Errors: conflict, if the database belongs to another program.
Result<void> check_application(sqlite::Connection& connection);
// Writes the whole database to another file, which it replaces.
Result<void> copy_ledger(sqlite::Connection& connection, const std::string& copy);

// "ledger.db.version-3": the database as it was before a server migrated it from version 3.
std::string copy_path(const std::string& path, int64_t version);

}  // namespace trainyard::ledger
