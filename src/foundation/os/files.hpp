// Reads, writes, lists and locks files. Durable writes survive power loss once they have returned.
//
// Threads: callable from anywhere. Errors: by errno (base/result.hpp), with the path in the
// message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::os {

// File owns a file descriptor and closes it in its destructor.
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

// Reads a regular file, which includes files of /proc. Never blocks: for a pipe or a device it
// fails with `invalid`. For a file larger than bytes_max it fails with `exhausted`.
Result<std::string> read_file(const std::string& path, size_t bytes_max = 64 << 20);
// Reads a file that is one whole number, as those of /proc, /sys and control groups are. Returns
// nothing if it cannot be read or has another content.
std::optional<int64_t> read_number(const std::string& path);
// Writes a temporary file in the same directory, syncs it, renames it to `path` and syncs the
// directory, so a reader sees either the whole old or the whole new content. The name of the
// temporary file starts with kNeighbourPrefix. A crash may leave one, which may be removed when no
// process is writing in the directory. A link at `path` is replaced, not followed.
Result<void> write_file_durably(const std::string& path, std::string_view bytes,
                                unsigned mode = 0600);
inline constexpr std::string_view kNeighbourPrefix = ".writing-";
// Writes all of `bytes` to an open file; `path` names the file in errors.
Result<void> write_whole(const File& file, std::string_view bytes, const std::string& path);
// Writes without durability, for files that can be made again. An existing file is overwritten in
// place.

Result<void> write_file(const std::string& path, std::string_view bytes, unsigned mode = 0644);
// Makes the missing directories of the path, each with `mode` less the umask.
Result<void> make_directories(const std::string& path, unsigned mode = 0755);
// Removes a file, or a tree of any depth. Does nothing if it is absent. Does not cross mounts or
// follow links: if there are mounts in the tree, they stay, everything else is removed, and the
// error names the first file that stayed.
Result<void> remove_all(const std::string& path);
Result<void> sync_directory(const std::string& path);
Result<std::vector<std::string>> list_directory(const std::string& path);  // sorted names
bool exists(const std::string& path);                                      // follows links

// FileLock is an exclusive lock on a file, which is made if it is absent. It is held until it is
// destroyed or the process ends, and excludes other holders in this process and in others. Errors:
// conflict, with the number of the process that holds it.
class FileLock {
 public:
  static Result<FileLock> take(const std::string& path);
  // Waits for the current holder.
  static Result<FileLock> take_within(const std::string& path, Duration at_most);
  // Like take(), but waits while the only holder is a child of a dead process: if a process is
  // killed while it starts a child, the child holds the lock until its exec.
  static Result<FileLock> take_after_death(const std::string& path, Duration at_most = 10s);
  // Returns true while a process holds the lock. Does not affect the holder.
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
