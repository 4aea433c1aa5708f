// Reads jobs and other records from the columns of their rows. Private to this module.
//
// Threads: confined to its connection's. Errors: corrupt, naming the invalid part of the record.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "domain/job.hpp"
#include "domain/record.hpp"
#include "ledger/ledger.hpp"
#include "ledger/sql_query.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {

// JobReader reads jobs. The row of an array's child has no spec; it reads the spec from the array's
// row, once for adjacent children.
class JobReader {
 public:
  // Reads the column `spec` of the array with that number; nullopt: job not found.
  using ReadSpec = std::function<Result<std::optional<std::string>>(int64_t number)>;
  explicit JobReader(ReadSpec read_spec) : read_spec_(std::move(read_spec)) {}
  explicit JobReader(sqlite::Connection& connection);

  // Reads the values of kJobColumns.
  Result<domain::Job> read(const std::string& spec, const std::string& progress, int64_t parent);
  // Requires: a row of kJobColumns.
  Result<domain::Job> read(const sqlite::Statement& row);
  // Logs and skips records that cannot be read, so that an invalid record never fails a list.
  Result<std::vector<domain::Job>> read_all(sqlite::Statement& rows);

 private:
  Result<domain::JobSpec> spec_of_array(int64_t number);

  ReadSpec read_spec_;
  int64_t array_ = 0;  // the array that spec_ belongs to
  domain::JobSpec spec_;
};

// Reads the current row. Requires: a row of kResourceColumns.
Result<ResourceRecord> resource_of(const sqlite::Statement& row);
// Sets the body of a resource from its column.
Result<ResourceRecord> resource_of(ResourceRecord record, const std::string& body);

// Reads columns `kind`, `name`, `revision` and `body` of the table `records`.
Result<domain::Record> record_of(const sqlite::Statement& row);
Result<domain::Record> record_of(const domain::RecordKey& key, int64_t revision,
                                 const std::string& body);
// Reads all rows of the table `records`.
Result<domain::Records> records_of(sqlite::Connection& connection);

// Reads and writes the column `tags` of the table `tags`.
Result<std::vector<domain::Tag>> tags_of(const std::string& arn, const std::string& text);
std::string text_of(const std::vector<domain::Tag>& tags);

// Reads the columns of the table `commands`.
Result<CommandRecord> command_of(int64_t sequence, int64_t at, std::string kind,
                                 const std::string& body);

}  // namespace trainyard::ledger
