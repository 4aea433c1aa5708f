#include "os/ownership.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

uid_t owner(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_uid;
}

TEST(GiveTree, ChangesAllOwnersAndFollowsNoLink) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryDirectory directory;
  const std::string tree = directory.path() + "/tree", other = directory.path() + "/other";
  ASSERT_TRUE(make_directories(tree + "/a/b"));
  ASSERT_TRUE(write_file(tree + "/a/b/c", "c"));
  ASSERT_TRUE(write_file(other, "o"));
  ASSERT_EQ(::symlink(other.c_str(), (tree + "/a/link").c_str()), 0);
  ASSERT_TRUE(give_tree(tree, 1000, 1001));
  for (const char* name : {"", "/a", "/a/b", "/a/b/c", "/a/link"})
    EXPECT_EQ(owner(tree + name), 1000u) << name;
  EXPECT_EQ(owner(other), 0u);
}

TEST(GiveTree, ReportsAMissingTree) {
  const auto given = give_tree("/no/such/tree", 0, 0);
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().kind, Kind::not_found);
}

}  // namespace
}  // namespace trainyard::os
