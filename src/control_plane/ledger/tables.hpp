// Creates the ledger's tables in SQLite, and migrates those of an older server.
// docs/formats/ledger.md describes them. Private to this module.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {

inline constexpr int64_t kNoStage = -1;  // batch_status of jobs that are in no queue

// Before a database of an earlier version is changed, a copy is made next to it (copy_path()).
// `path` is the database file.
// The version of the tables that this program makes.
int64_t file_version();
// Errors: conflict, when the database belongs to another program or a newer version; the error that
// prevents the copy (a full disk): then nothing was changed.
Result<void> make_tables(sqlite::Connection& connection, const std::string& path);

// The version of the tables that this program makes.
int64_t file_version();
// Errors: conflict, when the database belongs to another program.
Result<void> check_application(sqlite::Connection& connection);
// Writes the whole database to another file, which it replaces.
Result<void> copy_ledger(sqlite::Connection& connection, const std::string& copy);

// "ledger.db.version-3": the database as it was before a server migrated it from version 3.
std::string copy_path(const std::string& path, int64_t version);

}  // namespace trainyard::ledger
