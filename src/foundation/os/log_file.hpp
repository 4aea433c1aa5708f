// LogFile appends lines to a file and rotates it: FILE becomes FILE.1, FILE.1 becomes FILE.2, and
// the oldest is removed.
//
// When write() returns, the kernel has the line, so it survives the end of the process, but not
// always a power failure. A line that cannot be written, for example to a full disk, is dropped as
// a whole; the next line that can be written is preceded by the number of missing lines. A file
// that cannot be rotated keeps growing; rotation is tried again after another bytes_max bytes.
//
// Threads: callable from anywhere. Errors: by errno, with the path in the message.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_faults.hpp"
#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "os/disk.hpp"

namespace trainyard::os {

struct LogFileSettings {
  std::string path;
  uint64_t bytes_max = uint64_t{64} << 20;  // limit of one file; a longer line gets its own file
  int64_t files_max = 5;                    // including the current file
};

class LogFile {
 public:
  // Creates the file, not its directory. A path that is not a regular file (/dev/stderr) is never
  // rotated. Lifetime: `faults`, for tests, outlives it.
  static Result<std::unique_ptr<LogFile>> open(LogFileSettings settings,
                                               FileFaults* faults = nullptr);

  // `line` has no newline at its end.
  Result<void> write(std::string_view line);

  // Opens the path again, after another program has moved the file. On error it continues to use
  // the open file.
  Result<void> reopen();

 private:
  LogFile(LogFileSettings settings, FileFaults* faults)
      : settings_(std::move(settings)), disk_(faults) {}
  Result<File> open_file() const;
  Result<void> append(std::string_view text) REQUIRES(mutex_);
  Result<void> rotate() REQUIRES(mutex_);

  const LogFileSettings settings_;
  const Disk disk_;

  Mutex mutex_;
  File file_ GUARDED_BY(mutex_);
  uint64_t rotate_at_bytes_ GUARDED_BY(mutex_) = 0;
  bool torn_ GUARDED_BY(mutex_) = false;  // the file ends with an incomplete line
  uint64_t missing_ GUARDED_BY(mutex_) = 0;
  std::string missing_because_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::os
