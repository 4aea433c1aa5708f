// FileSystemLoop does the work that the records of FSx require: it fills new file systems from S3,
// exchanges files with linked prefixes, and removes deleted file systems.
//
// One thread plans (plan.hpp); a pool does the work, so that a file system whose bucket does not
// answer delays no other. Work beyond the threads of the pool is planned again later, so that it
// can still be cancelled; removals have a separate pool. Work of a killed server is begun again by
// the next one, and continues where it ended. A server that may no longer act begins no work, and
// ends running work.
//
// Threads:  its own; the destructor ends them, and requires that control still commits.
// Errors:   those of the work are in the records (failed), and in the log.
// Lifetime: all arguments outlive it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "file_systems/exchange.hpp"
#include "file_systems/file_systems.hpp"
#include "file_systems/plan.hpp"
#include "objects/objects.hpp"
#include "os/thread_pool.hpp"

namespace trainyard::file_systems {

class FileSystemLoop {
 public:
  FileSystemLoop(FileSystems& all, objects::Objects& objects, Clock& clock);
  FileSystemLoop(const FileSystemLoop&) = delete;
  ~FileSystemLoop();

 private:
  void run();
  bool ends(const Work& work) const;
  void begin(Work work);
  void act(const Work& work, Progress& progress);
  Result<Content> open_content(const LustreFileSystem& of, bool unfinished) const;
  Exchange exchange_of(const Work& work, const LustreFileSystem& of, const Content& content,
                       Progress& progress) const;
  bool is_retried(const Work& work, const Error& error, const Progress& progress);
  Result<void> act_on(const Work& work, const LustreFileSystem& of, Progress& progress);
  Result<void> fill(const Work& work, const LustreFileSystem& of, Progress& progress);
  Result<void> link(const Work& work, const LustreFileSystem& of, Progress& progress);
  Result<void> unlink(const Work& work, const LustreFileSystem& of);
  Result<void> remove(const Work& work);
  Result<void> run_task(const Work& work, const LustreFileSystem& of, Progress& progress);
  Result<ExchangeResult> exchange_files(const Work& work, const RepositoryTask& task,
                                        const LustreFileSystem& of, Progress& progress);
  void log_left_out(const std::string& file_system, const Link& link, const ExchangeResult& result);
  Result<void> import_changes(const Work& work, const LustreFileSystem& of, Progress& progress);

  FileSystems& all_;
  objects::Objects& objects_;
  Clock& clock_;

  mutable Mutex mutex_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::set<std::string> busy_ GUARDED_BY(mutex_);
  size_t running_ GUARDED_BY(mutex_) = 0;  // the work in busy_ except for removals
  std::map<std::string, Instant> imported_ GUARDED_BY(mutex_);
  struct Retry {
    WorkKind kind = WorkKind::fill;  // of the work that failed
    Instant at;
  };
  std::map<std::string, Retry> retries_ GUARDED_BY(mutex_);  // by file system
  struct Attempts {
    int idle = 0;            // consecutive attempts that completed no further file
    int64_t files_done = 0;  // the largest number of files that were done after an attempt
  };
  std::map<std::string, Attempts> attempts_ GUARDED_BY(mutex_);  // by file system
  // The failures of the last automatic import of each directory, so that they are logged once.
  std::map<std::string, std::string> left_out_ GUARDED_BY(mutex_);
  std::optional<os::ThreadPool> pool_, removals_;
  std::thread thread_;
};

}  // namespace trainyard::file_systems
