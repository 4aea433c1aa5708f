#include "trainyard/operate/ledger_commands.hpp"

#include <filesystem>
#include <system_error>

#include "base/plural.hpp"
#include "config/config.hpp"
#include "ledger/copy.hpp"
#include "ledger/lease.hpp"
#include "os/files.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/ledger_role.hpp"

namespace trainyard::apps {
namespace {

// Returns the ledger's database, which [ledger] must name.
Result<ledger::PostgresSettings> database_of(const config::Config& config) {
  const auto database = ledger_database_of(config);
  if (!database)
    return invalid(
        "the config has no [ledger]: give --config FILE with url = \"postgresql://..\" in it");
  return *database;
}

Result<config::Config> config_of(const StoredState& state) {
  std::string file = state.config_file;
  if (file.empty())
    if (const auto record = read_server_record(state.data_directory)) file = record->config_file;
  if (file.empty()) return config::Config();
  return config::read_config(file);
}

// Locks the data directory. Fails while a server, also a standby, has it open.
Result<DataDirectory> lock_data_directory(const std::string& directory) {
  return DataDirectory::open(directory).in(
      "stop all servers of this data directory, standbys included");
}

std::string account_of(const std::string& directory, const config::Config& config) {
  const auto identity = read_identity(directory);
  return identity ? identity->account : config.account_id;
}

// Copies the ledger's file to the empty database.
Result<ledger::Copied> fill_database(const std::string& file,
                                     const ledger::PostgresSettings& database,
                                     const ledger::LedgerOwner& owner, Clock& clock) {
  TRY(ledger::prepare_postgres(database, owner));
  const ledger::LeaseSettings settings;
  ledger::LeaseCandidate candidate(database, settings, "trainyard ledger copy", clock);
  const auto taken = TRY(candidate.try_take());
  if (!taken)
    return conflict("the ledger in the database is in use: its writer is " +
                    candidate.seen().holder);
  // Released when this function returns.
  const ledger::WriterLease lease(database, settings, *taken, clock, [](const std::string&) {});
  const ledger::Copied copied = TRY(ledger::copy_to_postgres(file, database, lease.fencing()));
  if (TRY(ledger::checksum_of_file(file)) != TRY(ledger::checksum_of_postgres(database)))
    return corrupt("the copy of the ledger differs from " + file +
                   ": empty the database, and copy again; the file is unchanged");
  return copied;
}

std::string describe(const ledger::Copied& copied) {
  return counted(copied.rows, "row") + " (" + counted(copied.jobs, "job") + ")";
}

// A backup has these files in addition to the ledger. Each may be missing.
constexpr const char* kFiles[] = {"VERSION",
                                  "sealing.key",
                                  "tls/ca.pem",
                                  "tls/ca-key.pem",
                                  "notify/signing-key.pem",
                                  "notify/signing.pem",
                                  "identity.json"};
constexpr const char* kDatabases[] = {"campaigns.db", "catalogue.db", "notifications.db",
                                      "alarms/alarms.sqlite", "alarms/dashboards.sqlite"};
constexpr size_t kFileBytesMax = 1 << 20;

Result<void> copy_small_files(const std::string& from, const std::string& to) {
  for (const char* name : kFiles) {
    const std::string source = from + "/" + name, target = to + "/" + name;
    if (!os::exists(source)) continue;
    TRY(os::make_directories(std::filesystem::path(target).parent_path().string(), 0700));
    TRY(os::write_file_durably(target, TRY(os::read_file(source, kFileBytesMax)), 0600));
  }
  return {};
}

Result<void> copy_databases(const std::string& from, const std::string& to) {
  for (const char* name : kDatabases) {
    const std::string source = from + "/" + name, target = to + "/" + name;
    if (!os::exists(source)) continue;
    TRY(os::make_directories(std::filesystem::path(target).parent_path().string(), 0700));
    TRY(ledger::copy_file(source, target).in("copying " + std::string(name)));
  }
  return {};
}

}  // namespace

Result<std::string> copy_ledger(const StoredState& state, bool to_file, Clock& clock,
                                Random& random) {
  const auto config = TRY(config_of(state));
  const auto database = TRY(database_of(config));
  const DataDirectory data = TRY(lock_data_directory(state.data_directory));
  const std::string file = data.file("ledger.db");
  if (!to_file) {
    const std::string kept = file + ".copied";
    if (os::exists(file) && os::exists(kept))
      return conflict(kept + " already exists, from an earlier copy: move it away");
    const auto owner = TRY(ledger_owner_of(data, account_of(data.path(), config), random));
    const auto copied = TRY(fill_database(file, database, owner, clock));
    TRY(ledger::move_file(file, kept).in("renaming " + file));
    return "copied " + describe(copied) + "; the file is kept as " + kept +
           "\nstart the server with this config";
  }
  const auto copied = TRY(ledger::copy_to_file(database, file));
  if (TRY(ledger::checksum_of_file(file)) != TRY(ledger::checksum_of_postgres(database)))
    return corrupt("the copy of the ledger, " + file +
                   ", differs from the database: remove the file, and copy again");
  return "copied " + describe(copied) + " to " + file +
         "\nremove [ledger] from the config, and start the server; the database is unchanged";
}

Result<std::string> adopt_ledger(const StoredState& state, Random& random) {
  const auto config = TRY(config_of(state));
  const auto database = TRY(database_of(config));
  const DataDirectory data = TRY(lock_data_directory(state.data_directory));
  const auto owner = TRY(ledger_owner_of(data, account_of(data.path(), config), random));
  TRY(ledger::adopt_postgres(database, owner));
  return "the ledger now belongs to " + data.path() + " on " + owner.machine;
}

Result<std::string> backup(const StoredState& state, const std::string& to) {
  const auto config = TRY(config_of(state));
  const auto database = ledger_database_of(config);
  if (to.empty()) return invalid("--to DIRECTORY is missing: name the directory for the backup");
  if (os::exists(to)) return conflict(to + " already exists: name a new directory");
  const std::string partial = to + ".partial";
  TRY(os::remove_all(partial));
  TRY(os::make_directories(partial, 0700).in("creating the backup's directory"));
  const std::string file = partial + "/ledger.db";
  if (database)
    TRY(ledger::copy_to_file(*database, file).in("backing up the ledger"));
  else
    TRY(ledger::copy_file(state.data_directory + "/ledger.db", file).in("backing up the ledger"));
  TRY(copy_databases(state.data_directory, partial));
  TRY(copy_small_files(state.data_directory, partial));
  std::error_code error;
  std::filesystem::rename(partial, to, error);
  if (error) return from_errno("renaming " + partial, error.value());
  TRY(os::sync_directory(std::filesystem::absolute(to).parent_path().string()));
  return "backed up to " + to +
         "; it holds secret keys. Objects, logs and metrics are not included";
}

Result<std::string> restore(const StoredState& state, const std::string& from, Clock& clock,
                            Random& random) {
  if (from.empty()) return invalid("--from DIRECTORY is missing: name the backup to restore");
  if (!os::exists(from + "/ledger.db"))
    return not_found(from + " is not a backup of Trainyard: it has no ledger.db");
  const auto config = TRY(config_of(state));
  const DataDirectory data = TRY(lock_data_directory(state.data_directory));
  for (const char* name : {"ledger.db", "identity.json"})
    if (os::exists(data.file(name)))
      return conflict("the data directory " + data.path() + " already has a " + name +
                      ": restore to a new directory");
  // The ledger is first, and the identity last: after a failure the data directory is still new.
  std::string done = "restored to " + data.path();
  if (const auto database = ledger_database_of(config)) {
    const auto owner = TRY(ledger_owner_of(data, account_of(from, config), random));
    const auto copied = TRY(fill_database(from + "/ledger.db", *database, owner, clock));
    done = "restored " + describe(copied) + " to the database, and the keys to " + data.path();
  } else {
    TRY(ledger::copy_file(from + "/ledger.db", data.file("ledger.db")));
  }
  TRY(copy_databases(from, data.path()));
  TRY(copy_small_files(from, data.path()));
  return done;
}

}  // namespace trainyard::apps
