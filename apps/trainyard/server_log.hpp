// ServerLog is the sink of the server's own log: standard error, or a file that is rotated. It also
// keeps the last errors for `trainyard status`.
//
// Threads: callable from anywhere. Errors: none from write(): a line that cannot be written to the
// file, as on a full disk, goes to standard error, and the server keeps running.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "operations/server_status.hpp"
#include "os/log_file.hpp"

namespace trainyard::apps {

inline constexpr size_t kErrorsKept = 20;        // what fits on a screen
inline constexpr size_t kErrorBytesMax = 1'000;  // longer texts of errors are shortened

class ServerLog {
 public:
  // Lifetime: the clock outlives it.
  explicit ServerLog(Clock& clock) : clock_(clock) {}

  // Writes to the file from now on. Errors: those of opening it. Called once, by the main thread.
  Result<void> open(const os::LogFileSettings& settings);
  // Opens the file again, after another program has moved it away. Logs an error.
  void reopen();

  void write(Level level, std::string_view line);
  // Returns the last errors, the oldest first.
  std::vector<api::ServerError> errors() const;

 private:
  Clock& clock_;
  mutable Mutex mutex_;
  std::shared_ptr<os::LogFile> file_ GUARDED_BY(mutex_);  // shared with calls in progress
  std::deque<api::ServerError> errors_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::apps
