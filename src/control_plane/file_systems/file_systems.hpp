// FileSystems gives other modules access to FSx file systems: their records, the directories that
// jobs mount, and the progress of running work. FileSystemLoop (loop.hpp) does the work.
//
// Threads:  callable from anywhere; change() blocks until the change is durable, so it must not run
//           on the thread that commits.
// Errors:   of change(): those of the change, and control's.
// Lifetime: control outlives it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/disk_reserve.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "domain/file_system.hpp"
#include "file_systems/store.hpp"

namespace trainyard::file_systems {

struct Settings {
  std::string root;                // the directory of all file systems, visible on all machines
  std::string boot;                // identifies the running kernel
  domain::PosixUsers posix_users;  // the users with which jobs access files, by their creators
  CheckDiskSpace check_disk_space = no_reserve();
  // Returns why this server may not act now; "": it may.
  std::function<std::string()> why_not = [] { return std::string(); };
  // Why file systems are not offered here; "": they are.
  std::string not_offered = {};
};

// The number of jobs with a channel of a file system.
struct JobsOn {
  size_t unfinished = 0;  // waiting or running
  size_t finished = 0;    // ended, but their hosts may still mount it
};

// The progress of running work. Threads: callable from anywhere.
struct Progress {
  std::atomic<int64_t> files{0}, files_done{0}, files_failed{0};
  std::atomic<uint64_t> bytes{0}, bytes_done{0};
};

class FileSystems {
 public:
  FileSystems(Settings settings, control::Control& control)
      : settings_(std::move(settings)), control_(control), store_(control) {}
  FileSystems(const FileSystems&) = delete;

  const Settings& settings() const { return settings_; }
  std::shared_ptr<const Snapshot> snapshot() const { return store_.snapshot(); }
  // Changes records, and wakes the loop. See FileSystemStore::change().
  Result<void> change(const std::function<Result<void>(Snapshot&)>& edit);
  // Returns the file systems of a region by id, for channels of jobs. Unavailable ones have a
  // reason.
  domain::FileSystems of_region(const std::string& region) const;
  JobsOn jobs_on(const std::string& key) const;

  // Returns the progress of running work on a file system, or of a task, by its key; nullptr: none.
  std::shared_ptr<const Progress> progress(const std::string& key) const;
  // Sets the progress; nullptr: the work has ended.
  void set_progress(const std::string& key, std::shared_ptr<const Progress> progress);

  // Wakes the loop.
  void wake();
  // Waits until the loop is woken, at most for that time.
  void wait(Duration at_most);

 private:
  const Settings settings_;
  control::Control& control_;
  FileSystemStore store_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool due_ GUARDED_BY(mutex_) = false;
  std::map<std::string, std::shared_ptr<const Progress>> progress_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::file_systems
