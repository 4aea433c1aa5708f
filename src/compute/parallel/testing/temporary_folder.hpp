// A TemporaryFolder is a directory of one test, removed with its content.
//
// Threads: confined to one at a time. Errors: a failed assertion.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.hpp"

namespace trainyard::parallel::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = std::filesystem::temp_directory_path() / "parallel_test.XXXXXX";
    CHECK(mkdtemp(path.data()), "a temporary folder");
    path_ = path;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace trainyard::parallel::testing
