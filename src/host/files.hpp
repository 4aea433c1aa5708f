// Files, done durably: what is said to be written survives power loss.
//
// Threads: callable from anywhere. Errors: by errno (base/result.hpp), with the path in the message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::host {

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

Result<std::string> read_file(const std::string& path, size_t bytes_max = 64 << 20);
// Written to a neighbour, fsynced, renamed over path, directory fsynced: a reader sees the old or the new, whole.
Result<void> write_file_durably(const std::string& path, std::string_view bytes, unsigned mode = 0600);
// Not durable; for what can be made again.
Result<void> write_file(const std::string& path, std::string_view bytes, unsigned mode = 0644);
Result<void> make_directories(const std::string& path, unsigned mode = 0755);
Result<void> remove_all(const std::string& path);  // harmless when absent; does not cross mounts or follow links
Result<void> sync_directory(const std::string& path);
Result<std::vector<std::string>> list_directory(const std::string& path);  // names, ordered
bool exists(const std::string& path);

// An exclusive lock on a file that is made when absent; held until destroyed (or the process ends).
// Errors: conflict, when another holds it; the message says which process.
class FileLock {
 public:
  static Result<FileLock> take(const std::string& path);
  // Whether somebody holds it now.
  static bool held(const std::string& path);

 private:
  explicit FileLock(File file) : file_(std::move(file)) {}
  File file_;
};

}  // namespace trainyard::host
