#include "os/beneath.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

constexpr int kEventMilliseconds = 60'000;

ino_t inode_of(const File& file) {
  struct stat status = {};
  EXPECT_EQ(::fstat(file.descriptor(), &status), 0);
  return status.st_ino;
}

// Returns the error number of a failed call.
int try_open(const File& directory, const char* path, int flags) {
  const File file(::openat(directory.descriptor(), path, flags | O_CLOEXEC));
  return file ? 0 : errno;
}

// Tests calls without RESOLVE flags, which are confined by the mount of the directory.
class ConfinedDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    ASSERT_TRUE(make_directories(path_));
    ASSERT_TRUE(write_file(outside_ + "/secret", "secret", 0600));
    auto opened = open_confined_directory(path_);
    ASSERT_TRUE(opened) << opened.error().message;
    directory_ = *std::move(opened);
  }

  TemporaryDirectory temporary_;
  const std::string outside_ = temporary_.path();
  const std::string path_ = outside_ + "/held";
  File directory_;
};

TEST_F(ConfinedDirectory, HasNoParent) {
  const File above(::openat(directory_.descriptor(), "..", O_PATH | O_CLOEXEC));
  ASSERT_TRUE(bool(above));
  EXPECT_EQ(inode_of(above), inode_of(directory_));
  EXPECT_EQ(try_open(directory_, "../secret", O_RDONLY), ENOENT);
  EXPECT_EQ(try_open(directory_, "../../../../../../../etc/passwd", O_RDONLY), ENOENT);
  ASSERT_EQ(::mkdirat(directory_.descriptor(), "below", 0755), 0);
  EXPECT_EQ(try_open(directory_, "below/../../secret", O_RDONLY), ENOENT);
  const auto below = open_directory_beneath(directory_, "below");
  ASSERT_TRUE(below);
  EXPECT_EQ(try_open(*below, "../../secret", O_RDONLY), ENOENT);
}

TEST_F(ConfinedDirectory, FollowsNoLinks) {
  ASSERT_EQ(::symlinkat("/etc", directory_.descriptor(), "etc"), 0);
  ASSERT_EQ(::symlinkat("/etc/passwd", directory_.descriptor(), "passwd"), 0);
  ASSERT_EQ(::symlinkat("../secret", directory_.descriptor(), "up"), 0);
  ASSERT_EQ(::symlinkat("/proc/self/root", directory_.descriptor(), "root"), 0);
  for (const char* path : {"etc/passwd", "passwd", "up", "root/etc/passwd", "etc"})
    EXPECT_EQ(try_open(directory_, path, O_RDONLY), ELOOP) << path;
  EXPECT_EQ(try_open(directory_, "up", O_WRONLY | O_TRUNC), ELOOP);
}

TEST_F(ConfinedDirectory, OpensNoDeviceFiles) {
  ASSERT_EQ(::mknodat(directory_.descriptor(), "null", S_IFCHR | 0666, makedev(1, 3)), 0);
  EXPECT_EQ(try_open(directory_, "null", O_RDONLY), EACCES);
  // It cannot be opened through the descriptor of an inspected path either.
  const File found(::openat(directory_.descriptor(), "null", O_PATH | O_CLOEXEC));
  const File opened(
      ::open(("/proc/self/fd/" + std::to_string(found.descriptor())).c_str(), O_RDONLY));
  EXPECT_FALSE(bool(opened));
}

TEST_F(ConfinedDirectory, IsASeparateMountOfTheSameDirectory) {
  ASSERT_TRUE(write_file(path_ + "/later", "by path"));
  const auto file = open_file_beneath(directory_, "later");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(write_file_beneath(directory_, "made", "by descriptor"));
  EXPECT_EQ(*read_file(path_ + "/made", 100), "by descriptor");
  // Opening the same directory again makes another mount.
  const auto again = open_confined_directory(path_);
  ASSERT_TRUE(again);
  EXPECT_EQ(::linkat(directory_.descriptor(), "made", again->descriptor(), "linked", 0), -1);
  EXPECT_EQ(errno, EXDEV);
}

TEST_F(ConfinedDirectory, EndsWithItsLastDescriptor) {
  const std::string mounted = outside_ + "/mounted";
  ASSERT_TRUE(make_directories(mounted));
  ASSERT_EQ(::mount("none", mounted.c_str(), "tmpfs", 0, "size=64k"), 0);
  auto held = open_confined_directory(mounted);
  const File events(::inotify_init1(IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(events.descriptor(), mounted.c_str(), IN_MODIFY), 0);
  ASSERT_EQ(::umount2(mounted.c_str(), 0), 0) << "open files do not make the mount itself busy";
  pollfd news = {events.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&news, 1, 0), 0) << "the file system is still in use";
  held->close();
  EXPECT_EQ(::poll(&news, 1, kEventMilliseconds), 1) << "it is unmounted everywhere";
}

TEST(OpenConfinedDirectory, ReportsAMissingDirectory) {
  const auto opened = open_confined_directory("/no/such/directory");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Kind::not_found);
}

}  // namespace
}  // namespace trainyard::os
