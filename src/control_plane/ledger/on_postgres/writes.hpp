// Builds the statements that write a batch to PostgreSQL. Private to this module.
//
// Threads: pure functions. Lifetime: the batch outlives its writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ledger/ledger.hpp"
#include "postgres/connection.hpp"

namespace trainyard::ledger::on_postgres {

struct Writes {
  std::vector<postgres::Query> statements;
  // The updates of jobs by the index of their statement. If one changed no row, the job is new:
  // insert_of() it.
  std::vector<std::pair<size_t, const domain::Job*>> updates;
};

// Requires: `last_job_number` is the largest number that the ledger has.
Writes writes_of(const Batch& batch, domain::JobNumber last_job_number);
postgres::Query insert_of(const domain::Job& job);

}  // namespace trainyard::ledger::on_postgres
