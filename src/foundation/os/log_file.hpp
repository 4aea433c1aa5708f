// LogFile appends lines to a file and rotates it: FILE becomes FILE.1, FILE.1 becomes FILE.2, and
// the oldest is removed.
//
// A line is with the kernel when write() returns, so it survives the end of the process, but not
// always a power failure. A line that cannot be written, to a full disk, is given up as a whole;
// the next one that can be written says how many are missing. A file that cannot be rotated grows,
// and is tried again after as many bytes.
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
  uint64_t bytes_max = uint64_t{64} << 20;  // of one file; a longer line has a file of its own
  int64_t files_max = 5;                    // with the current one
};

class LogFile {
 public:
  // Creates the file, not its directory. A path that is not a regular file (/dev/stderr) is never
  // rotated. Lifetime: `faults`, for tests, outlives it.
  static Result<std::unique_ptr<LogFile>> open(LogFileSettings settings,
                                               FileFaults* faults = nullptr);

  // `line` has no newline at its end.
  Result<void> write(std::string_view line);

  // Opens the path again, after another program has moved the file away. On error the open file is
  // used further.
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
  bool torn_ GUARDED_BY(mutex_) = false;  // the file ends with a part of a line
  uint64_t missing_ GUARDED_BY(mutex_) = 0;
  std::string missing_because_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::os
