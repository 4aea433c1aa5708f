// Exports copies log events of a time range to objects, in the background, one task after another.
//
// Each stream becomes the object PREFIX/TASK/STREAM/000000.gz, with a line "TIME MESSAGE" for each
// event; '/' in the stream's name is replaced by '-'. Tasks are not stored: they are lost when the
// server ends, and a task in progress is not continued.
//
// Threads: callable from anywhere; the destructor waits until the current page of events is
// written. Errors: exhausted (a task is already active), not_found. Lifetime: logs, objects, clock
// and random outlive it.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "objects/objects.hpp"
#include "observe/logs.hpp"

namespace trainyard::log_routing {

inline constexpr size_t kExportsKept = 1'000;  // tasks that ended
inline constexpr const char* kExportPrefix = "exportedlogs";

struct ExportRequest {
  std::string region, name, group, stream_prefix;
  std::string principal;     // the objects count against the storage quota of this principal
  int64_t from = 0, to = 0;  // milliseconds; `to` is inclusive
  std::string bucket;
  std::string prefix = kExportPrefix;
};

enum class ExportState { pending, running, completed, failed, cancelled };

struct ExportReport {
  std::string id;
  ExportRequest request;
  ExportState state = ExportState::pending;
  std::string message;
  Instant created;
  std::optional<Instant> ended;
};

class Exports {
 public:
  Exports(observe::Logs& logs, objects::Objects& objects, Clock& clock, Random& random);
  ~Exports();
  Exports(const Exports&) = delete;

  // Returns the id of the new task. At most one task of a region is active.
  Result<std::string> start(ExportRequest request);
  void wait(const std::string& id, Duration at_most);
  // Returns the tasks, the latest first.
  std::vector<ExportReport> list(const std::string& region);
  // Returns false if the task has already ended. Errors: not_found.
  Result<bool> cancel(const std::string& region, const std::string& id);

 private:
  struct Task;
  void work();
  Result<void> run(Task& task);

  observe::Logs& logs_;
  objects::Objects& objects_;
  Clock& clock_;
  Random& random_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<Task>> tasks_ GUARDED_BY(mutex_);  // oldest first
  std::thread thread_;                                          // last: it uses the members above
};

}  // namespace trainyard::log_routing
