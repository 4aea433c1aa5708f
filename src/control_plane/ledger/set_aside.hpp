// Moves records of the ledger that cannot be read out of the tables when the ledger is opened, so
// that the server starts without them. Nothing is lost: an operator can repair a record and put it
// back with SQL (docs/formats/ledger.md).
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
  std::string
      // "job", or that of a queue, an environment, .. or of a record of a front end ("user",
      // "role")
      kind;
  std::string name;    // REGION/NAME; of a record of a front end its name
  int64_t number = 0;  // of a job; else 0
  std::string reason;
};

// All records that are set aside, in the order in which they were. Reads only. Errors: not_found:
// no ledger.
Result<std::vector<SetAside>> read_set_aside(const std::string& path);
Result<std::vector<SetAside>> read_set_aside(const PostgresSettings& settings);

// Moves live jobs, queues, environments and policies, and records of front ends, that do not parse
// or are inconsistent, and logs each. Finished jobs and definitions stay: they are read on request
// only. Requires: `connection` is the only writer. Private to this module.
Result<void> set_aside_unreadable(sqlite::Connection& connection, const ResourceCheck& check);

// Makes the table of records that were set aside, unless it exists. Private to this module.
Result<void> make_set_aside_table(sqlite::Connection& connection);

// The largest number of a job that was set aside: it is never assigned again.
Result<int64_t> last_number_set_aside(sqlite::Connection& connection);

}  // namespace trainyard::ledger
