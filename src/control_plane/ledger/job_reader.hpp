// Reads jobs from rows of the table jobs. Private to this module.
//
// Threads: confined to its connection's. Errors: corrupt, naming the invalid part of the record.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "domain/job.hpp"
#include "domain/record.hpp"
#include "ledger/ledger.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {

inline constexpr std::string_view kJobColumns = "SELECT spec, progress, parent FROM jobs ";

// A child's row has no spec of its own: the spec is its array's, which is read once for adjacent
// children.
class JobReader {
 public:
  explicit JobReader(sqlite::Connection& connection) : connection_(connection) {}

  // Requires: a row of kJobColumns.
  Result<domain::Job> read(const sqlite::Statement& row);
  // Skips records that cannot be read and logs them: one invalid record never fails a list.
  Result<std::vector<domain::Job>> read_all(sqlite::Statement& rows);

 private:
  Result<domain::JobSpec> spec_of_array(int64_t number);

  sqlite::Connection& connection_;
  int64_t array_ = 0;  // the array that spec_ belongs to
  domain::JobSpec spec_;
};

inline constexpr std::string_view kResourceColumns =
    "SELECT kind, region, name, revision, active, body FROM nouns ";
// Reads the current row. Requires: a row of kResourceColumns.
Result<ResourceRecord> resource_of(const sqlite::Statement& row);

// Reads columns `kind`, `name`, `revision` and `body` of the table `records`.
Result<domain::Record> record_of(const sqlite::Statement& row);
// Reads all rows of the table `records`.
Result<domain::Records> records_of(sqlite::Connection& connection);

}  // namespace trainyard::ledger
