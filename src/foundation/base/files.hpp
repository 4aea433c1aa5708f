// Files is the file system as an interface, so that a simulator can lose, tear and refuse what is written.
//
// A module whose files decide crash safety takes a Files in its constructor. The shipped programs pass os::MachineFiles
// (os/machine_files.hpp); sim/ passes one whose disk is full, breaks and loses power.
//
// Durability: a change is visible at once, and survives the end of the process that made it, which may come in the
// middle of an append. It survives a power failure only after sync() of the file and sync_directory() of its directory:
// until then any part of it may be lost, in any order.
//
// Threads:  Files: callable from anywhere. AppendFile: one thread at a time.
// Errors:   by errno (base/result.hpp), with the path in the message; not_found for what is absent.
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

// A file that is written at its end only.
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

  // Creates the file when it is absent.
  virtual Result<std::unique_ptr<AppendFile>> open_append(const std::string& path, unsigned mode) = 0;
  // Overwrites a file that is there. A crash leaves any beginning of `bytes`, or nothing.
  virtual Result<void> write(const std::string& path, std::string_view bytes, unsigned mode) = 0;
  // Replaces `to`: a reader sees the old file or the new one.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  // Removes a file. Harmless when it is absent.
  virtual Result<void> remove(const std::string& path) = 0;
  // Removes a file or a tree. Harmless when it is absent.
  virtual Result<void> remove_all(const std::string& path) = 0;
  virtual Result<void> make_directories(const std::string& path, unsigned mode) = 0;
  virtual Result<void> sync_directory(const std::string& path) = 0;

  // Errors: also exhausted, for a file larger than bytes_max.
  virtual Result<std::string> read(const std::string& path, size_t bytes_max) = 0;
  // Up to `bytes` from `offset`; fewer at the end of the file.
  virtual Result<std::string> read_at(const std::string& path, uint64_t offset, size_t bytes) = 0;
  virtual Result<std::vector<std::string>> list_directory(const std::string& path) = 0;  // names, ordered
  virtual bool exists(const std::string& path) = 0;
};

}  // namespace trainyard
