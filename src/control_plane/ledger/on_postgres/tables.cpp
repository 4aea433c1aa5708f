#include "ledger/on_postgres/tables.hpp"

namespace trainyard::ledger::on_postgres {
namespace {

using postgres::Connection;
using postgres::Fault;

// Columns compare texts as bytes (COLLATE "C"), as SQLite does.
constexpr const char* kTables = R"(
CREATE SCHEMA IF NOT EXISTS trainyard_ledger;
CREATE TABLE IF NOT EXISTS ledger (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  version BIGINT NOT NULL,
  account TEXT NOT NULL,
  directory TEXT NOT NULL,
  machine TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS lease (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  fencing BIGINT NOT NULL,
  holder TEXT NOT NULL,
  expires TIMESTAMPTZ NOT NULL
);
CREATE TABLE IF NOT EXISTS commands (
  sequence BIGINT PRIMARY KEY,
  at BIGINT NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS jobs (
  number BIGINT PRIMARY KEY,
  region TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  state TEXT NOT NULL,
  live BIGINT NOT NULL,
  status_order BIGINT NOT NULL,
  created BIGINT NOT NULL,
  modified BIGINT NOT NULL,
  spec TEXT NOT NULL,
  progress TEXT NOT NULL,
  queue TEXT COLLATE "C" NOT NULL,
  parent BIGINT NOT NULL,
  reserved BIGINT NOT NULL,
  batch_status BIGINT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS jobs_by_name ON jobs (region, name);
CREATE INDEX IF NOT EXISTS jobs_live ON jobs (number) WHERE live = 1;
CREATE INDEX IF NOT EXISTS jobs_by_created ON jobs (region, created, name) WHERE parent = 0;
CREATE INDEX IF NOT EXISTS jobs_by_status ON jobs (region, status_order, name) WHERE parent = 0;
CREATE INDEX IF NOT EXISTS jobs_by_queue ON jobs (region, queue, created, name) WHERE parent = 0;
CREATE INDEX IF NOT EXISTS jobs_by_batch_status
  ON jobs (region, queue, batch_status, created, name) WHERE parent = 0;
CREATE INDEX IF NOT EXISTS jobs_by_parent ON jobs (parent, batch_status) WHERE parent > 0;
CREATE INDEX IF NOT EXISTS jobs_arrays ON jobs (number) WHERE reserved > 0;
CREATE TABLE IF NOT EXISTS tags (
  arn TEXT COLLATE "C" PRIMARY KEY,
  tags TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS nouns (
  kind TEXT COLLATE "C" NOT NULL,
  region TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  active BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (kind, region, name, revision)
);
CREATE TABLE IF NOT EXISTS usages (
  region TEXT COLLATE "C" NOT NULL,
  queue TEXT COLLATE "C" NOT NULL,
  share TEXT COLLATE "C" NOT NULL,
  cpu_seconds DOUBLE PRECISION NOT NULL,
  at BIGINT NOT NULL,
  cpus DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (region, queue, share)
);
CREATE TABLE IF NOT EXISTS records (
  kind TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (kind, name)
);
CREATE TABLE IF NOT EXISTS set_aside (
  place BIGINT PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  number BIGINT NOT NULL,
  reason TEXT NOT NULL,
  record TEXT NOT NULL
);
INSERT INTO lease VALUES (1, 0, '', '-infinity') ON CONFLICT DO NOTHING;
)";

// Ends a transaction that a stopped or separated server left open.
constexpr const char* kSession = R"(
SET search_path TO trainyard_ledger;
SET client_min_messages TO error;
SET idle_in_transaction_session_timeout TO '10s';
SET lock_timeout TO '5s';
SET statement_timeout TO 0;
SET default_transaction_isolation TO 'read committed';
)";

}  // namespace

Result<std::unique_ptr<Connection>> connect(const PostgresSettings& settings,
                                            const std::string& application) {
  auto connection = TRY(
      Connection::open({settings.url, settings.password, application, settings.answer_timeout}));
  TRY(connection->run_script(kSession));
  // Commits must be durable before they are acknowledged, also if the server's default is `off`.
  TRY(
      connection->run({"SELECT set_config('synchronous_commit', 'on', false) WHERE "
                       "current_setting('synchronous_commit') = 'off'"}));
  return connection;
}

std::string writer_session(uint64_t fencing) {
  return "trainyard writer " + std::to_string(fencing);
}

postgres::Query end_writer(uint64_t fencing) {
  return {
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND "
      "datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()",
      {writer_session(fencing)}};
}

Result<void> make_read_only(Connection& connection) {
  return connection.run_script("SET default_transaction_read_only TO on");
}

Result<bool> has_tables(Connection& connection) {
  const auto found = connection.run({"SELECT version FROM ledger WHERE id = 1"});
  if (!found && found.error().is(Fault::no_table)) return false;
  if (!found) return found.error();
  if (found->count() == 0) return false;
  const int64_t version = found->integer(0, 0);
  if (version > kPostgresVersion)
    return conflict("it has version " + std::to_string(version) +
                    ", but this release reads versions up to " + std::to_string(kPostgresVersion) +
                    "; run the newer release");
  if (version < kPostgresVersion)
    return conflict("it has version " + std::to_string(version) +
                    ", which this release cannot migrate; run the release that wrote it, or copy "
                    "it with that release's `trainyard ledger copy` to a file");
  return true;
}

Result<void> create_tables(Connection& connection, const LedgerOwner& owner) {
  // Runs in one transaction. The lock serialises servers that start at the same time.
  TRY(connection.run_script("BEGIN; SELECT pg_advisory_xact_lock(1415138375)"));
  auto made = connection.run_script(kTables);
  if (made) {
    const auto inserted =
        connection.run({"INSERT INTO ledger VALUES (1, $1, $2, $3, $4) ON CONFLICT DO NOTHING",
                        {kPostgresVersion, owner.account, owner.directory, owner.machine}});
    made = inserted ? Result<void>() : Result<void>(inserted.error());
  }
  if (made) return connection.run_script("COMMIT");
  static_cast<void>(connection.run_script("ROLLBACK"));
  Error error = std::move(made).error();
  if (error.kind == Kind::denied)
    error.message += ": the role needs the right CREATE on the database, or must own it";
  return std::move(error).in("creating the ledger's tables");
}

Result<void> check_owner(Connection& connection, const LedgerOwner& owner) {
  const auto found =
      TRY(connection.run({"SELECT account, directory, machine FROM ledger WHERE id = 1"}));
  if (found.count() != 1) return corrupt("its table `ledger` must have one row");
  const LedgerOwner stored{found.text(0, 0), found.text(0, 1), found.text(0, 2)};
  if (stored.account != owner.account)
    return conflict("it belongs to the account " + stored.account +
                    ", and this server has the account " + owner.account +
                    ": use another database, or the data directory of that account");
  if (stored.directory != owner.directory || stored.machine != owner.machine)
    return conflict(
        "it belongs to the data directory with the id " + stored.directory + " on the machine " +
        stored.machine + ", and this is the one with the id " + owner.directory +
        " on the machine " + owner.machine +
        ": the agents of running jobs are there. Start the server there. If that machine will "
        "not come back, run `trainyard ledger adopt` here");
  return {};
}

}  // namespace trainyard::ledger::on_postgres
