// Files is an interface to the file system, which lets a simulator lose, tear and reject writes.
//
// A module whose files decide crash safety takes a Files in its constructor. The shipped programs
// pass os::MachineFiles (os/machine_files.hpp); sim/ passes one that simulates full disks, disk
// errors and power failures.
//
// Durability: a change is visible at once and survives the end of its process, even if the process
// ends in the middle of an append. It survives a power failure only after sync() of the file and
// sync_directory() of its directory. Until then any part of it may be lost, in any order.
//
// Threads:  Files: callable from anywhere. AppendFile: one thread at a time.
// Errors:   by errno (base/result.hpp), with the path in the message; not_found for absent files.
// Lifetime: an AppendFile does not outlive its Files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard {

// A file to which bytes are only appended.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  // On error the file may have grown by a part of `bytes`.
  virtual Result<void> append(std::string_view bytes) = 0;
  virtual Result<void> truncate(uint64_t bytes) = 0;
  virtual Result<void> sync() = 0;
};

class Files {
 public:
  virtual ~Files() = default;

  // Creates the file if it is absent.
  virtual Result<std::unique_ptr<AppendFile>> open_append(const std::string& path,
                                                          unsigned mode) = 0;
  // Overwrites an existing file. After a crash the file has any prefix of `bytes`, or is absent.
  virtual Result<void> write(const std::string& path, std::string_view bytes, unsigned mode) = 0;
  // Replaces `to` atomically: a reader sees the old file or the new one.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  // Removes a file; does nothing if it is absent.
  virtual Result<void> remove(const std::string& path) = 0;
  // Removes a file or a tree; does nothing if it is absent.
  virtual Result<void> remove_all(const std::string& path) = 0;
  virtual Result<void> make_directories(const std::string& path, unsigned mode) = 0;
  virtual Result<void> sync_directory(const std::string& path) = 0;

  // Errors also: exhausted, for a file larger than bytes_max.
  virtual Result<std::string> read(const std::string& path, size_t bytes_max) = 0;
  // Reads up to `bytes` bytes from `offset`; fewer at the end of the file.
  virtual Result<std::string> read_at(const std::string& path, uint64_t offset, size_t bytes) = 0;
  // Returns the names in the directory, in byte order.
  virtual Result<std::vector<std::string>> list_directory(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
};

}  // namespace trainyard
