// Reads jobs off rows of the table jobs. Private to this room.
//
// Threads: confined to its connection's. Errors: corrupt, naming what of the record is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "domain/batch.hpp"
#include "domain/job.hpp"
#include "domain/record.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {

inline constexpr std::string_view kJobColumns = "SELECT spec, progress, parent FROM jobs ";

// A child's row has no spec of its own: it is that of its array, which is read once for all children that follow each
// other.
class JobReader {
 public:
  explicit JobReader(sqlite::Connection& connection) : connection_(connection) {}

  // Requires: a row of kJobColumns.
  Result<domain::Job> read(const sqlite::Statement& row);
  // Records that cannot be read are left out, and said in the log: one of them never fails a list.
  Result<std::vector<domain::Job>> read_all(sqlite::Statement& rows);

 private:
  Result<domain::JobSpec> spec_of_array(int64_t number);

  sqlite::Connection& connection_;
  int64_t array_ = 0;  // whose spec_ it is
  domain::JobSpec spec_;
};

// Columns `kind` and `body` of the row at hand.
Result<domain::BatchResource> resource_of(const sqlite::Statement& row);

// Columns `kind`, `name`, `revision` and `body` of the table `records`.
Result<domain::Record> record_of(const sqlite::Statement& row);

}  // namespace trainyard::ledger
