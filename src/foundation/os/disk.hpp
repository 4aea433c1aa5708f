// Disk wraps the file calls that make data durable, so that a test can make each of them fail.
//
// os/files.hpp has the same calls as plain functions. Modules that are responsible for crash safety
// call them through a Disk, which queries its FileFaults before each step.
//
// A Disk remembers the first sync that failed. The kernel may then have marked pages as clean that
// are not on the disk, so a writer must not trust a later successful sync either.
//
// Threads: callable from anywhere. Errors: by errno (base/result.hpp), with the path in the
// message.
#pragma once

#include <string>
#include <string_view>

#include "base/file_faults.hpp"
#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "os/files.hpp"

namespace trainyard::os {

class Disk {
 public:
  // Lifetime: `faults` outlives the Disk; nullptr: no faults are injected.
  explicit Disk(FileFaults* faults = nullptr) : faults_(faults) {}
  Disk(const Disk&) = delete;

  // Opens a file with the flags of open(2) and O_CLOEXEC.
  Result<File> create(const std::string& path, int flags, unsigned mode = 0600) const;
  Result<void> write(const File& file, std::string_view bytes, const std::string& path) const;
  Result<void> sync(const File& file, const std::string& path) const;
  Result<void> truncate(const File& file, uint64_t bytes, const std::string& path) const;
  // Errors: not_found, if `from` or the directory of `to` is absent.
  Result<void> rename(const std::string& from, const std::string& to) const;
  Result<void> remove(const std::string& path) const;  // does nothing if absent
  Result<void> make_directories(const std::string& path, unsigned mode) const;
  Result<void> sync_directory(const std::string& path) const;
  // Writes a file as write_file_durably() of os/files.hpp does.
  Result<void> write_file_durably(const std::string& path, std::string_view bytes,
                                  unsigned mode = 0600) const;
  // Returns the errno with which a step of the caller itself must fail; 0: it is carried out.
  int fault(FileStep step, const std::string& path) const {
    return injected_fault(step, path, 0).error_number;
  }
  // Returns the path of the first sync that failed (other than by a full disk); "": none failed.
  std::string failed_sync() const;

 private:
  FileFault injected_fault(FileStep step, const std::string& path, size_t bytes) const {
    return faults_ ? faults_->before(step, path, bytes) : FileFault();
  }
  Result<void> note(Result<void> synced, const std::string& path) const;

  FileFaults* const faults_;
  mutable Mutex mutex_;
  mutable std::string failed_sync_ GUARDED_BY(mutex_);
};

// Returns the bytes that an ordinary user may still write to the file system of the path.
Result<uint64_t> free_bytes(const std::string& path);

}  // namespace trainyard::os
