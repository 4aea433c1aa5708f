#include "os/mounts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

TEST(MountsBelow, ReturnsTheLastMountFirst) {
  constexpr const char* kText =
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "28 27 0:25 / /data/a rw - tmpfs x rw\n"
      "29 28 0:26 / /data/a/b\\040c rw shared:2 - tmpfs x rw\n"
      "30 27 0:27 / /data/ab rw - tmpfs x rw\n";
  EXPECT_EQ(mounts_below(kText, "/data/a"), (std::vector<std::string>{"/data/a/b c", "/data/a"}));
  EXPECT_TRUE(mounts_below(kText, "/dat").empty());
  EXPECT_TRUE(mounts_below("rubbish\n", "/data").empty());
}

TEST(BindBeneath, NeverLeavesTheRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const TemporaryDirectory place;
  const std::string root = place.path() + "/root", target = place.path() + "/target";
  ASSERT_TRUE(make_directories(root + "/a/b"));
  ASSERT_TRUE(make_directories(place.path() + "/outside"));
  ASSERT_TRUE(write_file(root + "/a/b/file", "x"));
  ASSERT_EQ(::symlink("a/b", (root + "/inner").c_str()), 0);
  ASSERT_EQ(::symlink("../outside", (root + "/outer").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", (root + "/absolute").c_str()), 0);
  for (const char* path : {"a/b", "inner", "./a/b"}) {
    const auto bound = bind_beneath(root, path, target);
    ASSERT_TRUE(bound) << bound.error().message;
    EXPECT_TRUE(exists(target + "/file"));
    EXPECT_TRUE(unmount_below(target));
    EXPECT_FALSE(exists(target + "/file"));
  }
  for (const char* path : {"outer", "absolute", "../outside", "a/../../outside", "/etc"})
    EXPECT_EQ(bind_beneath(root, path, target).error().kind, Kind::invalid) << path;
  EXPECT_EQ(bind_beneath(root, "none", target).error().kind, Kind::not_found);
  EXPECT_EQ(bind_beneath(root, "a/b/file", target).error().kind, Kind::invalid);
  EXPECT_EQ(bind_beneath(root + "/none", "", target).error().kind, Kind::not_found);
}

TEST(MountMemory, IsFullAtItsSize) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const TemporaryDirectory place;
  const auto mounted = mount_memory(place.path(), 64 << 10, 4);
  ASSERT_TRUE(mounted) << mounted.error().message;
  EXPECT_TRUE(write_file(place.path() + "/file", std::string(64 << 10, 'x')));
  EXPECT_FALSE(write_file(place.path() + "/file", std::string(65 << 10, 'x')));
  EXPECT_TRUE(unmount(place.path()));
  EXPECT_FALSE(exists(place.path() + "/file"));
  EXPECT_TRUE(unmount(place.path())) << "nothing is mounted";
}

class OverlayTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    ASSERT_TRUE(make_directories(lower_ + "/a"));
    ASSERT_TRUE(write_file(lower_ + "/a/file", "old"));
  }
  void TearDown() override { (void)unmount_below(target_); }
  // Skips the test if the file system of the temporary directory cannot contain a layer (an overlay
  // cannot).
  void mount() {
    const auto mounted = mount_overlay(lower_, layer_, target_, false);
    if (!mounted) GTEST_SKIP() << mounted.error().message;
  }

  const TemporaryDirectory place_;
  // The names contain a comma and a colon, which separate options and paths for the kernel.
  const std::string lower_ = place_.path() + "/lower,a:b", layer_ = place_.path() + "/layer:c",
                    target_ = place_.path() + "/target";
};

TEST_F(OverlayTest, KeepsWritesInItsUpperLayer) {
  mount();
  if (IsSkipped()) return;
  ASSERT_TRUE(write_file(target_ + "/a/file", "new"));
  ASSERT_TRUE(write_file(target_ + "/a/more", "more"));
  ASSERT_EQ(::rename((target_ + "/a").c_str(), (target_ + "/b").c_str()), 0);
  EXPECT_EQ(*read_file(target_ + "/b/file"), "new");
  EXPECT_EQ(*read_file(lower_ + "/a/file"), "old");
  EXPECT_EQ(*list_directory(lower_ + "/a"), (std::vector<std::string>{"file"}));
}

TEST_F(OverlayTest, StartsWithAnEmptyLayer) {
  mount();
  if (IsSkipped()) return;
  ASSERT_TRUE(remove_all(target_ + "/a"));
  ASSERT_TRUE(unmount_below(target_));
  mount();
  EXPECT_EQ(*read_file(target_ + "/a/file"), "old");
}

TEST_F(OverlayTest, NeedsADirectoryBelowIt) {
  EXPECT_FALSE(mount_overlay(lower_ + "/none", layer_, target_, false));
}

}  // namespace
}  // namespace trainyard::os
