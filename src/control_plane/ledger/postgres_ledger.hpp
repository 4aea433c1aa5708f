// Opens ledgers in a PostgreSQL database, for several servers of which one writes at a time.
//
// The writer holds a lease (lease.hpp). Each transaction checks the fencing number of the lease, so
// a server that lost it cannot commit. If the connection is lost during a commit, its outcome is
// unknown: the ledger connects again, waits until the old transaction has ended, and reads the
// outcome from the last sequence number.
//
// Threads: as Ledger. Errors: as Ledger's, and unavailable (the server does not answer), denied
// (role, password), conflict (another version, account or machine).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "ledger/ledger.hpp"

namespace trainyard::ledger {

struct PostgresSettings {
  std::string url;            // as for libpq: a URL, or "host=.. dbname=.."
  std::string password = {};  // "": taken from the URL, PGPASSWORD or the password file
  // The connection counts as lost after this time without a byte from the server.
  Duration answer_timeout = 10s;
};

// The owner of a ledger. The agents of running jobs belong to one machine and one data directory.
struct LedgerOwner {
  std::string account;
  std::string directory;  // the data directory's id
  std::string machine;    // its name
};

// Creates the tables in an empty database, or checks that they belong to `owner`. Errors: conflict,
// naming what differs.
Result<void> prepare_postgres(const PostgresSettings& settings, const LedgerOwner& owner);

// Makes another data directory or machine the owner of the ledger. Requires: no process of the
// previous owner runs, not even an agent. Errors: conflict, for another account; not_found.
Result<void> adopt_postgres(const PostgresSettings& settings, const LedgerOwner& owner);

// Requires: prepare_postgres() has succeeded. `fencing` is the number of the lease that this
// process holds.
Result<std::unique_ptr<Ledger>> open_postgres(const PostgresSettings& settings, uint64_t fencing,
                                              uint64_t commands_max = kCommandsMax,
                                              const ResourceCheck& check = {});

// Reads the API layer's records (users, policies); also works while a server runs.
// Errors: not_found: no ledger.
Result<domain::Records> read_postgres_records(const PostgresSettings& settings);

// The outcome of a commit during which the connection was lost.
// restart: memory and database differ; the server must be restarted.
enum class AfterLoss { committed, not_committed, restart };
// Decides by the last sequence numbers: before the commit, after it, and found in the database.
// `refused`: the commit was already reported as failed, so the state in memory does not include it.
AfterLoss after_loss(uint64_t before, uint64_t after, uint64_t found, bool refused);

}  // namespace trainyard::ledger
