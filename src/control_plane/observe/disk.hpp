// A Descriptor reads and writes an open file at offsets. Its errors contain the path.
//
// Threads: callable from anywhere. Errors: by errno.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::observe {

class Descriptor {
 public:
  // Flags and mode as open(2); O_CLOEXEC is added. Errors: by errno.
  static Result<Descriptor> open(const std::string& path, int flags, unsigned mode = 0600);

  // Reads up to `length` bytes from `offset`; fewer at the end of the file.
  Result<std::string> read(uint64_t offset, uint64_t length) const;
  Result<void> write(uint64_t offset, std::string_view bytes) const;
  Result<void> truncate(uint64_t length) const;
  Result<void> sync() const;  // data and length
  Result<uint64_t> length() const;

 private:
  Descriptor(std::string path, os::File file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  os::File file_;
};

Result<void> rename_file(const std::string& from, const std::string& to);
Result<void> remove_file(const std::string& path);  // does nothing if the file does not exist

}  // namespace trainyard::observe
