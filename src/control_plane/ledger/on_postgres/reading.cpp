#include "ledger/on_postgres/reading.hpp"

#include <memory>

#include "base/log.hpp"

namespace trainyard::ledger::on_postgres {

using postgres::Connection;
using postgres::Query;
using postgres::Rows;

JobReader job_reader(Connection& connection) {
  return JobReader([&connection](int64_t number) -> Result<std::optional<std::string>> {
    const Rows rows = TRY(connection.run({"SELECT spec FROM jobs WHERE number = $1", {number}}));
    return rows.count() == 0 ? std::optional<std::string>() : std::optional(rows.text(0, 0));
  });
}

std::vector<domain::Job> jobs_of(Connection& connection, const Rows& rows) {
  JobReader reader = job_reader(connection);
  std::vector<domain::Job> jobs;
  jobs.reserve(rows.count());
  for (size_t row = 0; row < rows.count(); ++row) {
    auto job = reader.read(rows.text(row, 0), rows.text(row, 1), rows.integer(row, 2));
    if (job)
      jobs.push_back(*std::move(job));
    else
      log(Level::error, "ledger", "a record cannot be read", {{"why", job.error().message}});
  }
  return jobs;
}

Result<ResourceRecord> resource_at(const Rows& rows, size_t row) {
  return resource_of({rows.text(row, 0),
                      {rows.text(row, 1), rows.text(row, 2)},
                      uint32_t(rows.integer(row, 3)),
                      rows.integer(row, 4) != 0,
                      {}},
                     rows.text(row, 5));
}

Result<domain::Records> records_of(Connection& connection) {
  const Rows rows = TRY(connection.run({"SELECT kind, name, revision, body FROM records"}));
  domain::Records records;
  for (size_t row = 0; row < rows.count(); ++row) {
    const domain::RecordKey key{rows.text(row, 0), rows.text(row, 1)};
    records.all[key] = std::make_shared<const domain::Record>(
        TRY(record_of(key, rows.integer(row, 2), rows.text(row, 3))));
  }
  return records;
}

Query query_of(const SqlQuery& sql_query) {
  Query query;
  int number = 0;
  for (const char each : sql_query.sql)
    query.sql += each == '?' ? "$" + std::to_string(++number) : std::string(1, each);
  for (const auto& parameter : sql_query.parameters)
    std::visit([&](const auto& value) { query.values.emplace_back(value); }, parameter);
  return query;
}

}  // namespace trainyard::ledger::on_postgres
