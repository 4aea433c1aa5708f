// A directory for a test's databases, which goes away with them.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

namespace trainyard::campaign::test {

class Directory {
 public:
  Directory() : path_(testing::TempDir() + "campaigns-XXXXXX") {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~Directory() {
    for (const char* name : {"catalogue.db", "slow.db"})
      for (const char* suffix : {"", "-wal", "-shm"})
        ::unlink(file(std::string(name) + suffix).c_str());
    EXPECT_EQ(::rmdir(path_.c_str()), 0) << path_;
  }
  Directory(const Directory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  bool has(const std::string& name) const { return ::access(file(name).c_str(), F_OK) == 0; }

 private:
  std::string path_;
};

}  // namespace trainyard::campaign::test
