// Sets unreadable records of a ledger aside: opening it moves them to another table, so that the
// server starts without them. Nothing is lost: an operator can repair a record and insert it again
// with SQL (docs/formats/ledger.md).
//
// Threads: any; each call opens the database for itself. Errors: as Ledger's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ledger/ledger.hpp"
#include "ledger/postgres_ledger.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {

struct SetAside {
  // "job", the kind of a resource ("job_queue"), or of an API layer's record ("user", "role").
  std::string kind;
  std::string name;    // REGION/NAME; the name of an API layer's record
  int64_t number = 0;  // the job's number; 0 for other records
  std::string reason;
};

// Returns all records that are set aside, in the order in which they were. Writes nothing.
// Errors: not_found: no ledger.
Result<std::vector<SetAside>> read_set_aside(const std::string& path);
Result<std::vector<SetAside>> read_set_aside(const PostgresSettings& settings);

// Moves live jobs, resources except definitions, and records of the API layer that do not parse or
// are inconsistent, and logs each. Finished jobs and definitions stay: they are read on request
// only. Requires: `connection` is the only writer. Private to this module.
Result<void> set_aside_unreadable(sqlite::Connection& connection, const ResourceCheck& check);

// Creates the table of records that are set aside, unless it exists. Private to this module.
Result<void> make_set_aside_table(sqlite::Connection& connection);

// Returns the largest number of a job that was set aside, which is never assigned again.
Result<int64_t> last_number_set_aside(sqlite::Connection& connection);

}  // namespace trainyard::ledger
