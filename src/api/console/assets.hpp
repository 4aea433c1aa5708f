// Assets are the files of the console that npm built, read once into memory.
//
// Threads: immutable. Errors: of reading: not_found (the console was not built), invalid (a file or
// the whole is too large).
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
  static constexpr size_t kBytesMax = 16 << 20;  // of all files; they stay in memory

  // Reads index.html, sign-in.html, and the files of the folders `assets` and `sign-in`.
  static Result<Assets> read(const std::string& directory);
  explicit Assets(std::map<std::string, Asset, std::less<>> files) : files_(std::move(files)) {}

  // `path`: "assets/main-1a2b.js". nullptr: not found.
  const Asset* find(std::string_view path) const;

 private:
  std::map<std::string, Asset, std::less<>> files_;
};

}  // namespace trainyard::api::console
