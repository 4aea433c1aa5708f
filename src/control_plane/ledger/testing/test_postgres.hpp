// Opens ledgers on the PostgreSQL server of a test (postgres/testing/test_server.hpp).
//
// Threads: as TestServer.
#pragma once

#include <memory>
#include <string>

#include "ledger/lease.hpp"
#include "ledger/postgres_ledger.hpp"
#include "os/machine_clock.hpp"
#include "postgres/testing/test_server.hpp"

namespace trainyard::ledger {

// The URL of an empty database.
inline std::string new_test_postgres() {
  auto& server = postgres::TestServer::shared();
  return server.url(server.new_database());
}

inline LedgerOwner a_test_owner() { return {"123456789012", "directory", "machine"}; }

// Takes the lease of another test's ledger, as a server would after its expiry.
inline Result<uint64_t> take_test_lease(const PostgresSettings& settings) {
  os::MachineClock clock;
  const auto connection = TRY(postgres::Connection::open({settings.url}));
  TRY(connection->run_script("UPDATE trainyard_ledger.lease SET expires = '-infinity'"));
  LeaseCandidate candidate(settings, {1h, 1h, 1h}, "a test", clock);
  const auto taken = TRY(candidate.try_take());
  if (!taken) return unavailable("the lease is held by " + candidate.seen().holder);
  return taken->fencing;
}

inline Result<std::unique_ptr<Ledger>> open_test_postgres(const PostgresSettings& settings,
                                                          uint64_t commands_max = kCommandsMax,
                                                          const ResourceCheck& check = {}) {
  TRY(prepare_postgres(settings, a_test_owner()));
  return open_postgres(settings, TRY(take_test_lease(settings)), commands_max, check);
}

}  // namespace trainyard::ledger
