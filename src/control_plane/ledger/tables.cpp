#include "ledger/tables.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include "base/log.hpp"

namespace trainyard::ledger {
namespace {

constexpr int64_t kApplication = 0x54594c47;  // "TYLG", in the file's header

constexpr const char* kFirstVersion = R"(
CREATE TABLE commands (
  sequence INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE TABLE jobs (
  number INTEGER PRIMARY KEY,
  region TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  live INTEGER NOT NULL,
  status_order INTEGER NOT NULL,
  created INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  spec TEXT NOT NULL,
  progress TEXT NOT NULL
);
CREATE UNIQUE INDEX jobs_by_name ON jobs (region, name);
CREATE INDEX jobs_by_created ON jobs (region, created, name);
CREATE INDEX jobs_by_status ON jobs (region, status_order, name);
CREATE INDEX jobs_live ON jobs (number) WHERE live = 1;
CREATE TABLE tags (
  arn TEXT PRIMARY KEY,
  tags TEXT NOT NULL
) WITHOUT ROWID;
)";

// Jobs of queues, and the other resources of Batch.
constexpr const char* kSecondVersion = R"(
ALTER TABLE jobs ADD COLUMN queue TEXT NOT NULL DEFAULT '';
CREATE INDEX jobs_by_queue ON jobs (region, queue, created, name);
CREATE TABLE nouns (
  kind TEXT NOT NULL,
  region TEXT NOT NULL,
  name TEXT NOT NULL,
  revision INTEGER NOT NULL,
  active INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (kind, region, name, revision)
) WITHOUT ROWID;
)";

// Arrays. Their children are only in indexes that serve queries for children, so that ten thousand
// of them slow down no other query. The status of a Batch job, with the numbers of domain::Stage,
// is computed for older records.
constexpr const char* kThirdVersion = R"(
ALTER TABLE jobs ADD COLUMN parent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN batch_status INTEGER NOT NULL DEFAULT -1;
UPDATE jobs SET batch_status = CASE
    WHEN state = 'completed' THEN 5
    WHEN state IN ('failed', 'stopped') THEN 6
    WHEN state = 'waiting' THEN CASE WHEN json_array_length(progress, '$.awaits') > 0 THEN 1 ELSE 2 END
    WHEN json_extract(progress, '$.attempts[#-1].training_started') IS NOT NULL THEN 4
    ELSE 3 END
  WHERE queue <> '';
DROP INDEX jobs_by_created;
DROP INDEX jobs_by_status;
DROP INDEX jobs_by_queue;
CREATE INDEX jobs_by_created ON jobs (region, created, name) WHERE parent = 0;
CREATE INDEX jobs_by_status ON jobs (region, status_order, name) WHERE parent = 0;
CREATE INDEX jobs_by_queue ON jobs (region, queue, created, name) WHERE parent = 0;
CREATE INDEX jobs_by_batch_status ON jobs (region, queue, batch_status, created, name) WHERE parent = 0;
CREATE INDEX jobs_by_parent ON jobs (parent, batch_status) WHERE parent > 0;
CREATE INDEX jobs_arrays ON jobs (number) WHERE reserved > 0;
)";

// The usage of shares. Earlier usage is unknown: every share begins with none.
constexpr const char* kFourthVersion = R"(
CREATE TABLE usages (
  region TEXT NOT NULL,
  queue TEXT NOT NULL,
  share TEXT NOT NULL,
  cpu_seconds REAL NOT NULL,
  at INTEGER NOT NULL,
  cpus REAL NOT NULL,
  PRIMARY KEY (region, queue, share)
) WITHOUT ROWID;
)";

// Documents of front ends: users, roles, policies.
constexpr const char* kFifthVersion = R"(
CREATE TABLE records (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  revision INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
)";

constexpr const char* kVersions[] = {kFirstVersion, kSecondVersion, kThirdVersion, kFourthVersion,
                                     kFifthVersion};

// The copy holds what was committed: it is whole and has no write-ahead log of its own. An existing
// copy comes from a server that died before the migration was committed, or from an earlier
// upgrade: it is replaced by the current state.
Result<void> copy_before_migration(sqlite::Connection& connection, const std::string& path,
                                   int64_t version) {
  return copy_ledger(connection, copy_path(path, version));
}

// The command by which the migrated ledger's program restores the copy.
std::string way_back(const std::string& path) {
  return "trainyard downgrade --data " + std::filesystem::path(path).parent_path().string();
}

Error of_newer_version(const std::string& path, int64_t version, int64_t known) {
  return conflict(
      "it has version " + std::to_string(version) + ", but this release reads versions up to " +
      std::to_string(known) +
      "; run the newer release. To go back to this one, and lose what happened since the upgrade, "
      "run with the newer release: " +
      way_back(path));
}

}  // namespace

int64_t file_version() { return int64_t(std::size(kVersions)); }

std::string copy_path(const std::string& path, int64_t version) {
  return path + ".version-" + std::to_string(version);
}

Result<void> check_application(sqlite::Connection& connection) {
  if (TRY(connection.integer("PRAGMA application_id")) == kApplication) return {};
  return conflict("this database is not a ledger of Trainyard");
}

Result<void> copy_ledger(sqlite::Connection& connection, const std::string& copy) {
  std::string quoted;
  for (const char c : copy) quoted += c == '\'' ? std::string("\'\'") : std::string(1, c);
  std::error_code none;
  std::filesystem::remove(copy, none);
  return connection.run("VACUUM INTO '" + quoted + "'").in("copying the ledger to " + copy);
}

Result<void> make_tables(sqlite::Connection& connection, const std::string& path) {
  const int64_t tables = TRY(connection.integer("SELECT count(*) FROM sqlite_master"));
  const int64_t version = tables == 0 ? 0 : TRY(connection.integer("PRAGMA user_version"));
  const int64_t present = file_version();
  if (tables > 0) TRY(check_application(connection));
  if (version > present) return of_newer_version(path, version, present);
  // A reader sees the last commit while the next is being written, and a commit is one append and
  // one sync.
  TRY(connection.run("PRAGMA journal_mode = WAL"));
  TRY(connection.run("PRAGMA synchronous = FULL"));
  if (version == present) return {};
  if (tables > 0) TRY(copy_before_migration(connection, path, version));
  TRY(connection.run("BEGIN IMMEDIATE"));
  for (int64_t next = version; next < present; ++next) TRY(connection.run(kVersions[next]));
  TRY(connection.run("PRAGMA application_id = " + std::to_string(kApplication)));
  TRY(connection.run("PRAGMA user_version = " + std::to_string(present)));
  TRY(connection.run("COMMIT"));
  if (tables > 0)
    log(Level::warning, "ledger", "the ledger was upgraded to a newer version",
        {{"from", std::to_string(version)},
         {"to", std::to_string(present)},
         {"copy", copy_path(path, version)},
         {"back", way_back(path)}});
  return {};
}

}  // namespace trainyard::ledger
