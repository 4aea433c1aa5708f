#include "ledger/job_reader.hpp"

#include "base/json.hpp"
#include "base/log.hpp"

namespace trainyard::ledger {
namespace {

using sqlite::Statement;

Result<domain::JobSpec> spec_of(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return corrupt("ledger: a job's spec is not JSON");
  auto spec = domain::job_spec_from_json(*json);
  if (!spec) return corrupt("ledger: a job's spec: " + spec.error().message);
  return spec;
}

}  // namespace

Result<domain::Job> JobReader::read(const Statement& row) {
  const auto progress = parse_json(row.text(1));
  if (!progress) return corrupt("ledger: a job's record is not JSON");
  auto job = domain::job_from_json(*progress);
  if (!job) return corrupt("ledger: a job's record: " + job.error().message);
  const int64_t parent = row.integer(2);
  if (parent == 0)
    job->spec = TRY(spec_of(row.text(0)));
  else
    job->spec = TRY(spec_of_array(parent));
  job->use_selected();
  return job;
}

Result<std::vector<domain::Job>> JobReader::read_all(Statement& rows) {
  std::vector<domain::Job> jobs;
  while (TRY(rows.step())) {
    auto job = read(rows);
    if (job)
      jobs.push_back(*std::move(job));
    else
      log(Level::error, "ledger", "a record cannot be read", {{"why", job.error().message}});
  }
  return jobs;
}

Result<domain::JobSpec> JobReader::spec_of_array(int64_t number) {
  if (number == array_) return spec_;
  Statement rows = TRY(connection_.prepare("SELECT spec FROM jobs WHERE number = ?"));
  rows.bind(number);
  if (!TRY(rows.step()))
    return corrupt("ledger: the array " + std::to_string(number) + " is missing");
  spec_ = TRY(spec_of(rows.text(0)));
  array_ = number;
  return spec_;
}

Result<ResourceRecord> resource_of(const Statement& row) {
  auto body = parse_json(row.text(5));
  if (!body) return corrupt("ledger: the record of a " + row.text(0) + " is not JSON");
  return ResourceRecord{row.text(0),
                        {row.text(1), row.text(2)},
                        uint32_t(row.integer(3)),
                        row.integer(4) != 0,
                        *std::move(body)};
}

Result<domain::Record> record_of(const Statement& row) {
  auto body = parse_json(row.text(3));
  if (!body || !body->is_object())
    return corrupt("ledger: the record " + row.text(0) + "/" + row.text(1) +
                   " is not a JSON object");
  const int64_t revision = row.integer(2);
  if (revision < 1)
    return corrupt("ledger: the record " + row.text(0) + "/" + row.text(1) + " has the revision " +
                   std::to_string(revision));
  return domain::Record{uint64_t(revision), *std::move(body)};
}

Result<domain::Records> records_of(sqlite::Connection& connection) {
  Statement rows = TRY(connection.prepare_once("SELECT kind, name, revision, body FROM records"));
  domain::Records records;
  while (TRY(rows.step()))
    records.all[{rows.text(0), rows.text(1)}] =
        std::make_shared<const domain::Record>(TRY(record_of(rows)));
  return records;
}

}  // namespace trainyard::ledger
