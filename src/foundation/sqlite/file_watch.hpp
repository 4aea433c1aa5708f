// Intercepts SQLite's file calls: remembers the first sync that failed, and lets a test make any
// step fail.
//
// After a failed sync the kernel may have dropped the pages and marked them clean, so a later
// successful sync proves nothing about them. SQLite itself reports a failed sync of the log once,
// and one within a checkpoint not at all; a writer that must stop then checks failed_sync().
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
  // Lifetime: `faults` outlives the watch; nullptr: no step fails on purpose.
  explicit FileWatch(FileFaults* faults = nullptr);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;

  // The name by which SQLite knows it, for Connection::open.
  const std::string& name() const { return name_; }
  // The path of the first file whose sync failed.
  std::optional<std::string> failed_sync() const;

  struct Hooks;  // SQLite's side, in file_watch.cpp

 private:
  FileFaults* const faults_;
  std::string name_;
  std::unique_ptr<Hooks> hooks_;
  mutable Mutex mutex_;
  std::optional<std::string> failed_sync_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::sqlite
