// Operates on stored state: moves the ledger between a file and a PostgreSQL database, and backs up
// and restores a data directory's state.
//
// Threads: called by the main thread. Errors: conflict (a server runs; the target has content),
// not_found, those of files and of the database. After an error the target is unchanged or empty.
#pragma once

#include <string>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::apps {

struct StoredState {
  std::string data_directory;
  std::string config_file;  // "" = the last server's
};

// Copies the ledger to the database of the config, or with `to_file` to the file of the data
// directory. Requires: no server uses the data directory. Returns a text for the user.
Result<std::string> copy_ledger(const StoredState& state, bool to_file, Clock& clock,
                                Random& random);

// Makes the ledger in the config's database belong to this data directory and machine.
Result<std::string> adopt_ledger(const StoredState& state, Random& random);

// Writes the ledger, the keys, the certificate authority, campaigns, alarms, dashboards and
// notifications to a new directory, while the server runs or without one. Objects, logs and metrics
// are not included.
Result<std::string> backup(const StoredState& state, const std::string& to);

// Fills a new data directory, and with [ledger] an empty database, from a backup.
Result<std::string> restore(const StoredState& state, const std::string& from, Clock& clock,
                            Random& random);

}  // namespace trainyard::apps
