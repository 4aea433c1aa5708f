// Reads and writes files, durably: data that was reported as written survives power loss.
//
// Threads: callable from anywhere. Errors: by errno (base/result.hpp), with the path in the
// message.
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

// Reads a regular file (those of /proc count as such): a pipe or a device in its place is
// `invalid`, never a wait. A file larger than bytes_max is `exhausted`.
Result<std::string> read_file(const std::string& path, size_t bytes_max = 64 << 20);
// Writes to a neighbour, fsyncs it, renames it over path and fsyncs the directory: a reader sees
// the whole old or new content. The neighbour's name starts with kNeighbourPrefix; a crash leaves
// one behind, which may be removed when no process is writing there. A link at path is replaced,
// not followed.
Result<void> write_file_durably(const std::string& path, std::string_view bytes,
                                unsigned mode = 0600);
inline constexpr std::string_view kNeighbourPrefix = ".writing-";
// Writes without durability, for files that can be made again. An existing file is overwritten in
// place. Writes all of `bytes` to an open file; `path` names it in errors.
Result<void> write_whole(const File& file, std::string_view bytes, const std::string& path);

Result<void> write_file(const std::string& path, std::string_view bytes, unsigned mode = 0644);
// Makes the missing directories, each with `mode` less the umask. Harmless when they exist.
Result<void> make_directories(const std::string& path, unsigned mode = 0755);
// Removes a file, or a tree of any depth. Harmless when absent; does not cross mounts or follow
// links: mounts in the tree stay, all else is removed, and the error names the first file that
// stayed.
Result<void> remove_all(const std::string& path);
Result<void> sync_directory(const std::string& path);
Result<std::vector<std::string>> list_directory(const std::string& path);  // names, ordered
bool exists(const std::string& path);                                      // links are followed

// An exclusive lock on a file, which is made when absent; held until destroyed (or the end of the
// process). It excludes holders in this process as well as in others. Errors: conflict, when
// another holds it; the message names the process.
class FileLock {
 public:
  static Result<FileLock> take(const std::string& path);
  // Waits for the current holder.
  static Result<FileLock> take_within(const std::string& path, Duration at_most);
  // As take(), but waits while the only holders are children of a dead process: a process that is
  // killed while it starts another one leaves the lock to that one until its exec.
  static Result<FileLock> take_after_death(const std::string& path, Duration at_most = 10s);
  // True while a process holds it. The query does not disturb the holder.
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
