// Files, done durably: what is said to be written survives power loss.
//
// Threads: callable from anywhere. Errors: by errno (base/result.hpp), with the path in the message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::os {

// A file descriptor that closes itself.
class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(other.release()) {}
  File& operator=(File&& other) noexcept;
  ~File() { close(); }
  int descriptor() const { return descriptor_; }
  int release();
  void close();
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// Regular files only (those of /proc count as such): a pipe or a device in its place is `invalid`, never a
// wait. Larger than bytes_max is `exhausted`.
Result<std::string> read_file(const std::string& path, size_t bytes_max = 64 << 20);
// Written to a neighbour, fsynced, renamed over path, directory fsynced: a reader sees the old or the new,
// whole. The neighbour's name starts with kNeighbourPrefix; a crash in mid-write leaves one behind, which
// anybody may remove who knows that nobody writes there now. A link at path is replaced, not followed.
Result<void> write_file_durably(const std::string& path, std::string_view bytes, unsigned mode = 0600);
inline constexpr std::string_view kNeighbourPrefix = ".writing-";
// Not durable; for what can be made again. A file that is there is overwritten in place.
Result<void> write_file(const std::string& path, std::string_view bytes, unsigned mode = 0644);
// Those missing, each with `mode` less the umask. Harmless when they are there.
Result<void> make_directories(const std::string& path, unsigned mode = 0755);
// A file, or a tree however deep. Harmless when absent; does not cross mounts or follow links: what is
// mounted below stays, all else is removed, and the error names the first thing that stayed.
Result<void> remove_all(const std::string& path);
Result<void> sync_directory(const std::string& path);
Result<std::vector<std::string>> list_directory(const std::string& path);  // names, ordered
bool exists(const std::string& path);                                      // links are followed

// An exclusive lock on a file that is made when absent; held until destroyed (or the process ends). It
// excludes other takers in this process as well as in others. Errors: conflict, when another holds it; the
// message says which process.
class FileLock {
 public:
  static Result<FileLock> take(const std::string& path);
  // The same, waiting for whoever holds it.
  static Result<FileLock> take_within(const std::string& path, Duration at_most);
  // As take(), but waits while nobody but children of a process that is gone hold it: a process that was killed while it
  // started another one leaves the lock to that one until it has begun.
  static Result<FileLock> take_after_death(const std::string& path, Duration at_most = 10s);
  // Whether somebody holds it now. Asking disturbs nobody.
  static bool held(const std::string& path);

  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock() { release(); }

 private:
  explicit FileLock(File file) : file_(std::move(file)) {}
  void release();
  File file_;
};

}  // namespace trainyard::os
