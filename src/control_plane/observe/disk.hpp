// Wraps the file calls of this module, with errors that name the path.
//
// Threads: callable from anywhere. Errors: by errno.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::observe {

class Descriptor {
 public:
  // Flags and mode as open(2); O_CLOEXEC is added. Errors: by errno.
  static Result<Descriptor> open(const std::string& path, int flags, unsigned mode = 0600);
  Descriptor(Descriptor&& other) noexcept : path_(std::move(other.path_)), number_(other.number_) {
    other.number_ = -1;
  }
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  // Reads up to `length` bytes from `offset`; fewer at the end of the file.
  Result<std::string> read(uint64_t offset, uint64_t length) const;
  Result<void> write(uint64_t offset, std::string_view bytes) const;
  Result<void> truncate(uint64_t length) const;
  Result<void> sync() const;  // data and length
  Result<uint64_t> length() const;

 private:
  Descriptor(std::string path, int number) : path_(std::move(path)), number_(number) {}
  std::string path_;
  int number_;
};

Result<void> make_directory(const std::string& path);  // and its parents; does nothing if it exists
Result<void> sync_directory(const std::string& path);
Result<void> rename_file(const std::string& from, const std::string& to);
Result<void> remove_file(const std::string& path);  // does nothing if it is absent

}  // namespace trainyard::observe
