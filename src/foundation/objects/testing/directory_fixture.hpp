// DirectoryTest opens a directory of objects for tests. open() opens it again.
//
// Threads: confined to the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/random.hpp"
#include "objects/directory.hpp"
#include "objects/directory/key_path.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::objects {

class DirectoryTest : public testing::Test {
 protected:
  void open() {
    objects_.reset();
    auto opened = open_directory(path(), clock_, random_);
    ASSERT_TRUE(opened) << opened.error().message;
    objects_ = std::move(*opened);
  }
  std::string path() const { return directory_.path() + "/objects"; }
  std::string file_of(const std::string& key) const {
    return path() + "/buckets/bucket/keys/" + path_of(key);
  }
  size_t files_in(const std::string& name) const {
    size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path() + "/" + name))
      files += entry.is_regular_file();
    return files;
  }

  os::TemporaryDirectory directory_;
  os::MachineClock clock_;
  SeededRandom random_{3};
  std::unique_ptr<Objects> objects_;
};

}  // namespace trainyard::objects
