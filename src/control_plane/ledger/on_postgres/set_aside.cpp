#include "ledger/on_postgres/set_aside.hpp"

#include <optional>

#include "base/log.hpp"
#include "base/text.hpp"
#include "domain/job_check.hpp"
#include "ledger/job_reader.hpp"
#include "ledger/on_postgres/reading.hpp"

namespace trainyard::ledger::on_postgres {
namespace {

using postgres::Connection;
using postgres::Query;
using postgres::Rows;

constexpr size_t kReasonBytesMax = 1'000;  // of one record's error, which may quote the record

// An unreadable record, and the statements that move it. `$1`, `$2`: its name and reason.
struct Damaged {
  std::string kind, name, reason;
  Query keep, remove;
};

constexpr const char* kNextPlace = "(SELECT coalesce(max(place), 0) + 1 FROM set_aside)";

std::string keep_from(const std::string& columns, const std::string& table,
                      const std::string& where) {
  return std::string("INSERT INTO set_aside (place, kind, name, number, reason, record) SELECT ") +
         kNextPlace + ", " + columns + ", row_to_json(damaged)::text FROM " + table +
         " damaged WHERE " + where;
}

Result<std::vector<Damaged>> damaged_jobs(Connection& connection) {
  const Rows rows =
      TRY(connection.run({"SELECT spec, progress, parent, number, region, name FROM jobs WHERE "
                          "live = 1 ORDER BY number"}));
  JobReader reader = job_reader(connection);
  std::vector<Damaged> found;
  for (size_t row = 0; row < rows.count(); ++row) {
    const auto job = reader.read(rows.text(row, 0), rows.text(row, 1), rows.integer(row, 2));
    if (!job && job.error().kind != Kind::corrupt) return job.error();
    const auto checked = job ? domain::check_consistent(*job) : Result<void>(job.error());
    if (checked) continue;
    const std::string name = rows.text(row, 4) + "/" + rows.text(row, 5);
    const std::string reason = shorten(checked.error().message, kReasonBytesMax);
    const int64_t number = rows.integer(row, 3);
    found.push_back(
        {"job",
         name,
         reason,
         {keep_from("'job', $1, number, $2", "jobs", "number = $3"), {name, reason, number}},
         {"DELETE FROM jobs WHERE number = $1", {number}}});
  }
  return found;
}

Result<std::vector<Damaged>> damaged_resources(Connection& connection, const ResourceCheck& check) {
  const Rows rows =
      TRY(connection.run({std::string(kResourceColumns) + "WHERE kind <> 'job_definition'"}));
  std::vector<Damaged> found;
  for (size_t row = 0; row < rows.count(); ++row) {
    auto resource = resource_at(rows, row);
    auto checked =
        resource ? (check ? check(*resource) : Result<void>()) : Result<void>(resource.error());
    if (checked) continue;
    const std::string kind = rows.text(row, 0), region = rows.text(row, 1),
                      name = rows.text(row, 2);
    std::string reason = checked.error().message;
    if (resource) reason.insert(0, "ledger: the record of a " + kind + ": ");
    reason = shorten(reason, kReasonBytesMax);
    const std::string where = "kind = $3 AND region = $4 AND name = $5 AND revision = $6";
    found.push_back({kind,
                     region + "/" + name,
                     reason,
                     {keep_from("kind, $1, 0, $2", "nouns", where),
                      {region + "/" + name, reason, kind, region, name, rows.integer(row, 3)}},
                     {"DELETE FROM nouns WHERE kind = $1 AND region = $2 AND name = $3 AND "
                      "revision = $4",
                      {kind, region, name, rows.integer(row, 3)}}});
  }
  return found;
}

Result<std::vector<Damaged>> damaged_records(Connection& connection) {
  const Rows rows = TRY(connection.run({"SELECT kind, name, revision, body FROM records"}));
  std::vector<Damaged> found;
  for (size_t row = 0; row < rows.count(); ++row) {
    const std::string kind = rows.text(row, 0), name = rows.text(row, 1);
    const auto record = record_of({kind, name}, rows.integer(row, 2), rows.text(row, 3));
    if (record) continue;
    const std::string reason = shorten(record.error().message, kReasonBytesMax);
    found.push_back({kind,
                     name,
                     reason,
                     {keep_from("kind, $1, 0, $2", "records", "kind = $3 AND name = $4"),
                      {name, reason, kind, name}},
                     {"DELETE FROM records WHERE kind = $1 AND name = $2", {kind, name}}});
  }
  return found;
}

}  // namespace

Query check_fencing(uint64_t fencing) {
  return {"SELECT fencing FROM lease WHERE id = 1 AND fencing = $1 FOR KEY SHARE",
          {int64_t(fencing)}};
}

Result<void> set_aside_unreadable(Connection& connection, uint64_t fencing,
                                  const ResourceCheck& check) {
  std::vector<Damaged> all = TRY(damaged_jobs(connection));
  // Children follow their array, which is read first.
  for (Damaged& each : TRY(damaged_resources(connection, check))) all.push_back(std::move(each));
  for (Damaged& each : TRY(damaged_records(connection))) all.push_back(std::move(each));
  if (all.empty()) return {};
  TRY(connection.run({"BEGIN"}));
  if (TRY(connection.run(check_fencing(fencing))).count() != 1) return conflict(kFenced);
  for (const Damaged& each : all) {
    TRY(connection.run(each.keep));
    TRY(connection.run(each.remove));
  }
  TRY(connection.run({"COMMIT"}));
  for (const Damaged& each : all)
    log(Level::error, "ledger", "a record that cannot be read was set aside",
        {{"kind", each.kind}, {"name", each.name}, {"why", each.reason}});
  return {};
}

Result<int64_t> last_number_set_aside(Connection& connection) {
  return TRY(connection.run({"SELECT coalesce(max(number + coalesce((record::json ->> "
                             "'reserved')::bigint, 0)), 0) FROM set_aside"}))
      .integer(0, 0);
}

}  // namespace trainyard::ledger::on_postgres
