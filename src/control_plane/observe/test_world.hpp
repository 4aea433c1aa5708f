// Provides helpers for the tests of this module: a temporary directory and ASSERT_OK.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace trainyard::observe {

// In memory if /dev/shm exists: the tests sync thousands of times, and do not depend on a real
// disk's behaviour.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    path_ = ((memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
             "observe_test_XXXXXX")
                .string();
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  operator const std::string&() const { return path_; }

 private:
  std::string path_;
};

#define ASSERT_OK(expression)                                               \
  do {                                                                      \
    const auto& result_ = (expression);                                     \
    ASSERT_TRUE(bool(result_)) << (result_ ? "" : result_.error().message); \
  } while (false)

}  // namespace trainyard::observe
