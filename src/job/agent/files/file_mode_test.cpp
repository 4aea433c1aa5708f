#include "agent/files/file_mode.hpp"

#include <gtest/gtest.h>

namespace trainyard::agent {
namespace {

TEST(FileMode, MountsUnlessTheConfigOrTheHostForbidsIt) {
  EXPECT_TRUE(choose_file_mode({}).mounts);
  EXPECT_FALSE(choose_file_mode({true, false, ""}).mounts);
  EXPECT_FALSE(choose_file_mode({false, true, ""}).mounts);
  EXPECT_FALSE(choose_file_mode({false, false, "no FUSE"}).mounts);
}

TEST(FileMode, OnlyAMissingMountIsReported) {
  EXPECT_EQ(choose_file_mode({}).note, "");
  EXPECT_EQ(choose_file_mode({true, false, "no FUSE"}).note, "");
  EXPECT_EQ(choose_file_mode({false, true, "no FUSE"}).note, "");
  EXPECT_EQ(choose_file_mode({false, false, "no FUSE"}).note,
            "is copied before the script starts: no FUSE");
}

TEST(FileMode, ChoosesACacheThatKeepsAllBlocks) {
  EXPECT_EQ(choose_cache(10, 10, 0), BlocksKept::on_machine);
  EXPECT_EQ(choose_cache(10, 9, 10), BlocksKept::on_volume);
  EXPECT_EQ(choose_cache(10, 9, 9), BlocksKept::nowhere);
  EXPECT_EQ(choose_cache(0, 0, 0), BlocksKept::on_machine);
}

TEST(FileMode, SmallChannelsHaveFewBytesInFewObjects) {
  EXPECT_TRUE(is_small(1, kCopiedBytesMax));
  EXPECT_TRUE(is_small(kCopiedObjectsMax, 1));
  EXPECT_FALSE(is_small(kCopiedObjectsMax + 1, 1));
  EXPECT_FALSE(is_small(1, kCopiedBytesMax + 1));
}

}  // namespace
}  // namespace trainyard::agent
