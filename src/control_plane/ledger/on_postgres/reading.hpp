// Reads records from rows of PostgreSQL. Private to this module.
//
// Threads: confined to the connection's. Errors: corrupt, naming the invalid part of the record.
#pragma once

#include <vector>

#include "ledger/job_reader.hpp"
#include "postgres/connection.hpp"

namespace trainyard::ledger::on_postgres {

// Lifetime: the connection outlives the reader.
JobReader job_reader(postgres::Connection& connection);
// Requires: rows of kJobColumns. Skips records that cannot be read and logs them.
std::vector<domain::Job> jobs_of(postgres::Connection& connection, const postgres::Rows& rows);
// Requires: rows of kResourceColumns.
Result<ResourceRecord> resource_at(const postgres::Rows& rows, size_t row);
// Reads all rows of the table `records`.
Result<domain::Records> records_of(postgres::Connection& connection);
// Converts the question marks of a query to PostgreSQL's `$1`, `$2`, ..
postgres::Query query_of(const SqlQuery& sql_query);

}  // namespace trainyard::ledger::on_postgres
