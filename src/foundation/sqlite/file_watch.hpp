// FileWatch intercepts the file calls of SQLite. It remembers the first sync that failed, and lets
// a test make any step fail.
//
// After a failed sync the kernel may have marked pages as clean without writing them, so a later
// successful sync does not mean that they are on the disk. SQLite itself reports a failed sync of
// the log once, and a failed sync in a checkpoint not at all. A writer that must stop after a
// failed sync therefore checks failed_sync().
//
// Threads: callable from anywhere. Lifetime: outlives the connections that were opened with it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/file_faults.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::sqlite {

class FileWatch {
 public:
  // Lifetime: `faults` outlives the watch; nullptr: no faults are injected.
  explicit FileWatch(FileFaults* faults = nullptr);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;

  // Returns the name under which it is registered in SQLite, for Connection::open.
  const std::string& name() const { return name_; }
  // Returns the path of the first file whose sync failed.
  std::optional<std::string> failed_sync() const;

  struct Hooks;  // the VFS of SQLite, in file_watch.cpp

 private:
  FileFaults* const faults_;
  std::string name_;
  std::unique_ptr<Hooks> hooks_;
  mutable Mutex mutex_;
  std::optional<std::string> failed_sync_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::sqlite
