// Sets unreadable records of a ledger on PostgreSQL aside, as set_aside.hpp does in SQLite. Private
// to this module.
//
// Threads: each call uses its connection alone. Errors: those of the connection.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "ledger/ledger.hpp"
#include "postgres/connection.hpp"

namespace trainyard::ledger::on_postgres {

// Requires: this process holds the lease with that fencing number.
Result<void> set_aside_unreadable(postgres::Connection& connection, uint64_t fencing,
                                  const ResourceCheck& check);
Result<int64_t> last_number_set_aside(postgres::Connection& connection);

// Builds the query that locks the row of the lease for the current transaction. It returns no row
// if another server is the writer.
postgres::Query check_fencing(uint64_t fencing);
inline constexpr const char* kFenced =
    "another server has become the writer of the ledger; this one must be started again";

}  // namespace trainyard::ledger::on_postgres
