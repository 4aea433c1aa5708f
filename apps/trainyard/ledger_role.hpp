// LedgerRole makes this server the writer of its ledger: at once for a file, and for a PostgreSQL
// database when no other server holds the lease. Until then the server is a standby.
//
// A server that takes the lease ends the process of the previous writer if it still runs on this
// machine: it may be suspended, or disconnected from PostgreSQL. It cannot commit, but it occupies
// the port and has the links to agents.
//
// Threads: why_not() from anywhere; the rest from the main thread. Lifetime: the clock and the data
// directory outlive it. Errors: those of the ledger; conflict, if it belongs to another server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "ledger/lease.hpp"
#include "ledger/ledger.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {

// Returns the settings of the ledger's database; nullopt: the ledger is a file of the data
// directory.
std::optional<ledger::PostgresSettings> ledger_database_of(const config::Config& config);
// Identifies this server's data directory and machine; makes its id at the first start.
Result<ledger::LedgerOwner> ledger_owner_of(const DataDirectory& data, const std::string& account,
                                            Random& random);

class LedgerRole {
 public:
  LedgerRole(const config::Config& config, const DataDirectory& data, Clock& clock);
  // Releases the lease. Requires: nothing writes to the ledger.
  ~LedgerRole();
  LedgerRole(const LedgerRole&) = delete;

  // Checks the database, and makes its tables at the first start.
  Result<void> prepare(const ledger::LedgerOwner& owner);

  struct StandbyCallbacks {
    // Called when the reason changes for which this server is a standby. `writer`: the name of the
    // writer; "": unknown.
    std::function<void(const std::string& why, const std::string& writer)> standby;
    // Waits for this time. Returns false when a signal ends the server.
    std::function<bool(Duration)> pause;
    // Called once, when another server has become the writer.
    std::function<void(const std::string& why)> lost;
  };
  // Blocks until this server is the writer (true), or a signal ends it (false). Standbys show
  // `name`.
  Result<bool> become_writer(const std::string& name, const StandbyCallbacks& waiting);

  Result<std::unique_ptr<ledger::Ledger>> open(const ledger::ResourceCheck& check) const;
  // Returns the reason why this server must not act now; "" while it is the writer.
  std::string why_not() const { return lease_ ? lease_->why_not() : ""; }

 private:
  Result<void> end_predecessor() const;

  const DataDirectory& data_;
  Clock& clock_;
  const std::optional<ledger::PostgresSettings> database_;
  ledger::LeaseSettings lease_settings_;
  std::unique_ptr<ledger::WriterLease> lease_;
};

}  // namespace trainyard::apps
