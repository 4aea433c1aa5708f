#include "os/volume.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/files.hpp"
#include "os/mounts.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

class Volume : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || ::access("/dev/loop-control", R_OK | W_OK) != 0)
      GTEST_SKIP() << "needs root and loop devices";
  }
  void TearDown() override {
    EXPECT_TRUE(remove_volume(at_, file_));
    const auto mounts = read_file("/proc/self/mountinfo");
    ASSERT_TRUE(mounts);
    EXPECT_EQ(mounts->find(directory_.path()), std::string::npos);
    EXPECT_FALSE(exists(file_));
  }
  const TemporaryDirectory directory_;
  const std::string at_ = directory_.path() + "/ml", file_ = directory_.path() + "/volume";
  const std::string templates_ = directory_.path() + "/templates";
  static constexpr uint64_t kBytes = 32 << 20;
};

TEST_F(Volume, IsFullAtItsSize) {
  ASSERT_TRUE(make_volume(at_, file_, kBytes, templates_));
  EXPECT_TRUE(list_directory(at_)->empty());
  EXPECT_FALSE(is_full(at_));
  ASSERT_TRUE(write_file(at_ + "/fits", std::string(20 << 20, 'x')));
  const auto refused = write_file(at_ + "/too-much", std::string(20 << 20, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::exhausted);
  EXPECT_TRUE(is_full(at_));
  EXPECT_EQ(read_file(at_ + "/fits")->size(), size_t(20 << 20));
}

TEST_F(Volume, LimitsTheNumberOfFiles) {
  ASSERT_TRUE(make_volume(at_, file_, kBytes, templates_));
  constexpr int kFilesMax = int(kBytes >> 14);  // one inode for 16 KiB
  int made = 0;
  while (made < 2 * kFilesMax && write_file(at_ + "/" + std::to_string(made), "")) made++;
  EXPECT_GT(made, kFilesMax / 2);
  EXPECT_LE(made, kFilesMax);
  EXPECT_TRUE(is_full(at_));
}

TEST_F(Volume, IsEmptyWhenItIsMadeAgain) {
  for (int i = 0; i < 2; i++) {
    ASSERT_TRUE(make_volume(at_, file_, kBytes, templates_));
    EXPECT_FALSE(exists(at_ + "/left"));
    ASSERT_TRUE(write_file(at_ + "/left", "left"));
  }
  ASSERT_TRUE(remove_volume(at_, file_));
  ASSERT_TRUE(remove_volume(at_, file_)) << "a second removal does nothing";
}

TEST_F(Volume, IsRemovedWithItsDirectory) {
  ASSERT_TRUE(make_volume(at_, file_, kBytes, templates_));
  ASSERT_TRUE(write_file(at_ + "/left", "left"));
  // The cleanup after a crash removes it in this way.
  ASSERT_TRUE(unmount_below(directory_.path()));
  ASSERT_TRUE(remove_all(at_));
}

}  // namespace
}  // namespace trainyard::os
