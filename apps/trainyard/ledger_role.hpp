// LedgerRole makes this server the writer of its ledger: at once for a file, and for a PostgreSQL
// database when no other server holds the lease. Until then the server is a standby.
//
// A server that takes the lease ends the process of the previous writer, if it still runs on this
// machine: it may be stopped, or separated from PostgreSQL. It could commit nothing, but it holds
// the port, and the links of agents.
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

// Nothing: the ledger is a file of the data directory.
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
    // Called when the text for requests and the log changes.
    std::function<void(const std::string& why)> standby;
    // Waits for that long, or for a signal that ends the server: then it returns false.
    std::function<bool(Duration)> pause;
    // Called once, when another server has become the writer.
    std::function<void(const std::string& why)> lost;
  };
  // Returns when this server is the writer. False: it was told to end. `name` is shown by standbys.
  Result<bool> become_writer(const std::string& name, const StandbyCallbacks& waiting);

  Result<std::unique_ptr<ledger::Ledger>> open(const ledger::ResourceCheck& check) const;
  // The reason why this server must not act at present; "" while it is the writer.
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
