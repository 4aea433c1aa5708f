// Creates the ledger's tables in a PostgreSQL database, and checks their owner.
// docs/formats/ledger.md describes them. Private to this module.
//
// Threads: each call uses its connection alone. Errors: conflict (another version, account or
// machine), denied (the role may not create a schema), those of the connection.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "ledger/postgres_ledger.hpp"
#include "postgres/connection.hpp"

namespace trainyard::ledger::on_postgres {

inline constexpr int64_t kPostgresVersion = 1;

// Opens a connection on which unqualified names are the ledger's tables.
Result<std::unique_ptr<postgres::Connection>> connect(const PostgresSettings& settings,
                                                      const std::string& application);
// Returns the name of the sessions in which the writer with that number commits.
std::string writer_session(uint64_t fencing);
// Builds the query that ends all other sessions of that writer in this database. (Other databases
// of the server may have ledgers with equal numbers.)
postgres::Query end_writer(uint64_t fencing);
// Makes the session of a reader read-only.
Result<void> make_read_only(postgres::Connection& connection);

// Returns true if the database has a ledger. Errors also: conflict, for another version.
Result<bool> has_tables(postgres::Connection& connection);
// Creates the tables of a ledger that belongs to `owner`.
Result<void> create_tables(postgres::Connection& connection, const LedgerOwner& owner);
Result<void> check_owner(postgres::Connection& connection, const LedgerOwner& owner);

}  // namespace trainyard::ledger::on_postgres
