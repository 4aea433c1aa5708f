#include "ledger/downgrade.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "ledger/tables.hpp"
#include "os/files.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {

Result<Restored> restore_copy(const std::string& path) {
  Restored restored;
  {
    const auto present = TRY(sqlite::Connection::open(path));
    const int64_t version = TRY(present->integer("PRAGMA user_version"));
    restored.version = version - 1;
    while (restored.version > 0 && !os::exists(copy_path(path, restored.version)))
      restored.version--;
    if (restored.version <= 0)
      return not_found("no copy of an earlier version found next to " + path +
                       ": this ledger was never migrated");
    TRY(check_application(*present));
    TRY(copy_ledger(*present, copy_path(path, version)));
    restored.kept_copy = copy_path(path, version);
    // Moves the write-ahead log into the file; closing the database then removes the log.
    TRY(present->run("PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  const std::string temporary = path + ".restored";
  std::error_code error;
  std::filesystem::copy_file(copy_path(path, restored.version), temporary,
                             std::filesystem::copy_options::overwrite_existing, error);
  if (error) return from_errno("copying to " + temporary, error.value());
  const os::File copied(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
  if (!copied || ::fsync(copied.descriptor()) != 0) return from_errno("syncing " + temporary);
  for (const char* log : {"-wal", "-shm"}) TRY(os::remove_all(path + log));
  std::filesystem::rename(temporary, path, error);
  if (error) return from_errno("renaming to " + path, error.value());
  TRY(os::sync_directory(std::filesystem::path(path).parent_path().string()));
  return restored;
}

}  // namespace trainyard::ledger
