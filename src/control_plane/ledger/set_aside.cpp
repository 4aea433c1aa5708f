#include "ledger/set_aside.hpp"

#include <optional>

#include "base/log.hpp"
#include "base/text.hpp"
#include "domain/job_check.hpp"
#include "ledger/job_reader.hpp"

namespace trainyard::ledger {
namespace {

using sqlite::Connection;
using sqlite::Statement;

constexpr size_t kReasonBytesMax = 1'000;  // of one record's error, which may quote the record

// The table is independent of the numbered versions: an earlier server ignores it.
constexpr const char* kTable = R"(
CREATE TABLE IF NOT EXISTS set_aside (
  place INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  number INTEGER NOT NULL,
  reason TEXT NOT NULL,
  record TEXT NOT NULL
))";

enum class Table { jobs, resources, records };

struct Unreadable {
  Table table = Table::jobs;
  SetAside record;
  int64_t row = 0;          // its rowid, or the revision of a resource
  std::string region, key;  // a record of a front end has only the key
};

// Describes what is wrong with a record; nullopt if it is valid. Errors: the record could not be
// checked, for example because the disk failed.
Result<std::optional<std::string>> fault_of(JobReader& reader, const Statement& row) {
  const auto job = reader.read(row);
  if (!job && job.error().kind != Kind::corrupt) return job.error();
  if (!job) return std::optional(job.error().message);
  const auto checked = domain::check_consistent(*job);
  return checked ? std::nullopt : std::optional(checked.error().message);
}

Result<std::vector<Unreadable>> unreadable_jobs(Connection& connection) {
  Statement rows =
      TRY(connection.prepare_once("SELECT spec, progress, parent, number, region, name FROM jobs "
                                  "WHERE live = 1 ORDER BY number"));
  JobReader reader(connection);
  std::vector<Unreadable> found;
  while (TRY(rows.step())) {
    const auto fault = TRY(fault_of(reader, rows));
    if (!fault) continue;
    found.push_back({Table::jobs,
                     {"job", rows.text(4) + "/" + rows.text(5), rows.integer(3), *fault},
                     rows.integer(3),
                     rows.text(4),
                     rows.text(5)});
  }
  return found;
}

// Returns an error text that users may read, or nullopt if the resource is valid.
std::optional<std::string> fault_of(const Statement& row, const ResourceCheck& check) {
  const auto resource = resource_of(row);
  if (!resource) return resource.error().message;
  const auto checked = check ? check(*resource) : Result<void>();
  if (checked) return std::nullopt;
  return "ledger: the record of a " + resource->kind + ": " + checked.error().message;
}

Result<std::vector<Unreadable>> unreadable_resources(Connection& connection,
                                                     const ResourceCheck& check) {
  Statement rows = TRY(
      connection.prepare_once(std::string(kResourceColumns) + "WHERE kind <> 'job_definition'"));
  std::vector<Unreadable> found;
  while (TRY(rows.step())) {
    const auto fault = fault_of(rows, check);
    if (!fault) continue;
    found.push_back({Table::resources,
                     {rows.text(0), rows.text(1) + "/" + rows.text(2), 0, *fault},
                     rows.integer(3),
                     rows.text(1),
                     rows.text(2)});
  }
  return found;
}

Result<std::vector<Unreadable>> unreadable_records(Connection& connection) {
  Statement rows = TRY(connection.prepare_once("SELECT kind, name, revision, body FROM records"));
  std::vector<Unreadable> found;
  while (TRY(rows.step())) {
    const auto record = record_of(rows);
    if (!record)
      found.push_back({Table::records,
                       {rows.text(0), rows.text(1), 0, record.error().message},
                       0,
                       "",
                       rows.text(1)});
  }
  return found;
}

// These statements store the whole row as JSON, so that it can be restored.
constexpr const char* kKeepJob =
    "INSERT INTO set_aside (kind, name, number, reason, record) SELECT 'job', ?, number, ?, "
    "json_object('number', number, 'region', region, 'name', name, 'state', state, 'live', live, "
    "'status_order', status_order, 'created', created, 'modified', modified, 'spec', spec, "
    "'progress', progress, 'queue', queue, 'parent', parent, 'reserved', reserved, 'batch_status', "
    "batch_status) FROM jobs WHERE number = ?";
constexpr const char* kKeepResource =
    "INSERT INTO set_aside (kind, name, number, reason, record) SELECT kind, ?, 0, ?, "
    "json_object('kind', kind, 'region', region, 'name', name, 'revision', revision, 'active', "
    "active, 'body', body) FROM nouns WHERE kind = ? AND region = ? AND name = ? AND revision = ?";
constexpr const char* kKeepRecord =
    "INSERT INTO set_aside (kind, name, number, reason, record) SELECT kind, name, 0, ?, "
    "json_object('kind', kind, 'name', name, 'revision', revision, 'body', body) FROM records "
    "WHERE kind = ? AND name = ?";

Result<void> move(Connection& connection, const Unreadable& each) {
  const std::string reason = shorten(each.record.reason, kReasonBytesMax);
  if (each.table == Table::records) {
    Statement keep = TRY(connection.prepare_once(kKeepRecord));
    TRY(keep.bind(reason).bind(each.record.kind).bind(each.key).run());
    Statement gone =
        TRY(connection.prepare_once("DELETE FROM records WHERE kind = ? AND name = ?"));
    return gone.bind(each.record.kind).bind(each.key).run();
  }
  if (each.table == Table::jobs) {
    Statement keep = TRY(connection.prepare_once(kKeepJob));
    TRY(keep.bind(each.record.name).bind(reason).bind(each.row).run());
    Statement gone = TRY(connection.prepare_once("DELETE FROM jobs WHERE number = ?"));
    return gone.bind(each.row).run();
  }
  Statement keep = TRY(connection.prepare_once(kKeepResource));
  keep.bind(each.record.name).bind(reason).bind(each.record.kind).bind(each.region).bind(each.key);
  TRY(keep.bind(each.row).run());
  Statement gone = TRY(connection.prepare_once(
      "DELETE FROM nouns WHERE kind = ? AND region = ? AND name = ? AND revision = ?"));
  return gone.bind(each.record.kind).bind(each.region).bind(each.key).bind(each.row).run();
}

// Errors: not_found: no record was ever set aside.
Result<void> find_table(Connection& connection) {
  const int64_t tables =
      TRY(connection.integer("SELECT count(*) FROM sqlite_master WHERE name = 'set_aside'"));
  if (tables == 0) return not_found("nothing was set aside");
  return {};
}

}  // namespace

Result<std::vector<SetAside>> read_set_aside(const std::string& path) {
  const auto connection = TRY(Connection::open(path, sqlite::Access::read));
  std::vector<SetAside> found;
  if (const auto there = find_table(*connection); !there)
    return there.error().kind == Kind::not_found ? Result(found)
                                                 : Result<std::vector<SetAside>>(there.error());
  Statement rows = TRY(
      connection->prepare_once("SELECT kind, name, number, reason FROM set_aside ORDER BY place"));
  while (TRY(rows.step()))
    found.push_back({rows.text(0), rows.text(1), rows.integer(2), rows.text(3)});
  return found;
}

Result<void> set_aside_unreadable(Connection& connection, const ResourceCheck& check) {
  std::vector<Unreadable> all = TRY(unreadable_jobs(connection));
  // Children follow their array, which is read first.
  for (Unreadable& resource : TRY(unreadable_resources(connection, check)))
    all.push_back(std::move(resource));
  for (Unreadable& record : TRY(unreadable_records(connection))) all.push_back(std::move(record));
  if (all.empty()) return {};
  TRY(connection.run("BEGIN IMMEDIATE"));
  TRY(make_set_aside_table(connection));
  for (const Unreadable& each : all) TRY(move(connection, each));
  TRY(connection.run("COMMIT"));
  for (const Unreadable& each : all)
    log(Level::error, "ledger", "a record that cannot be read was set aside",
        {{"kind", each.record.kind}, {"name", each.record.name}, {"why", each.record.reason}});
  return {};
}

Result<void> make_set_aside_table(Connection& connection) { return connection.run(kTable); }

Result<int64_t> last_number_set_aside(Connection& connection) {
  const auto there = find_table(connection);
  if (!there && there.error().kind == Kind::not_found) return 0;
  TRY(there);
  return connection.integer(
      "SELECT coalesce(max(number + coalesce(json_extract(record, '$.reserved'), 0)), 0) FROM "
      "set_aside");
}

}  // namespace trainyard::ledger
