// Assets has the console's files that npm built, read into memory once.
//
// Threads: immutable. Errors of read(): not_found (the console was not built), invalid (the files
// are too large).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::api::console {

struct Asset {
  std::string bytes;
  std::string_view content_type;
};

class Assets {
 public:
  static constexpr size_t kBytesMax = 16 << 20;  // the size of all files, which stay in memory

  // Reads index.html, sign-in.html, and the files of the folders `assets` and `sign-in`.
  static Result<Assets> read(const std::string& directory);
  explicit Assets(std::map<std::string, Asset, std::less<>> files) : files_(std::move(files)) {}

  // Returns nullptr if the file is not found. `path`: "assets/main-1a2b.js".
  const Asset* find(std::string_view path) const;

 private:
  std::map<std::string, Asset, std::less<>> files_;
};

}  // namespace trainyard::api::console
