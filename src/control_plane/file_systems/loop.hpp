// Acts on the records of FSx: fills new file systems from S3, exchanges files with linked prefixes,
// and removes what is deleted.
//
// One thread plans (plan.hpp); a pool acts, so that a file system whose bucket does not answer
// delays no other. Work beyond the threads of the pool is planned again later, so that it can still
// be cancelled; removals have threads of their own. What a killed server had begun is begun again
// by the next one, and continues where it ended. A server that may no longer act begins nothing,
// and ends what it does.
//
// Threads:  its own; the destructor ends them, and needs control to commit until then.
// Errors:   of the work: in the records (failed), and in the log.
// Lifetime: what it is given outlives it.
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
    int idle = 0;            // in a row, that completed no further file
    int64_t files_done = 0;  // the most of one attempt, with those of earlier ones
  };
  std::map<std::string, Attempts> attempts_ GUARDED_BY(mutex_);  // by file system
  // The failures of the last automatic import of each directory, so that the same are logged once.
  std::map<std::string, std::string> left_out_ GUARDED_BY(mutex_);
  std::optional<os::ThreadPool> pool_, removals_;
  std::thread thread_;
};

}  // namespace trainyard::file_systems
