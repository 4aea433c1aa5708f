#include "os/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

unsigned mode_of(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

struct FilesTest : testing::Test {
  TemporaryDirectory directory;
  std::string at(const std::string& name) { return directory.path() + "/" + name; }
};

TEST_F(FilesTest, ReadsWrittenBytes) {
  const std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(write_file_durably(at("x"), bytes));
  EXPECT_EQ(*read_file(at("x")), bytes);
  EXPECT_EQ(mode_of(at("x")), 0600u);
  ASSERT_TRUE(write_file_durably(at("x"), "", 0640));
  EXPECT_EQ(*read_file(at("x")), "");
  EXPECT_EQ(mode_of(at("x")), 0640u);
  EXPECT_EQ(*list_directory(directory.path()), std::vector<std::string>{"x"});
}

TEST_F(FilesTest, DurableWritingReplacesALinkAndLeavesItsTarget) {
  ASSERT_TRUE(write_file(at("target"), "old"));
  ASSERT_EQ(::symlink("target", at("link").c_str()), 0);
  ASSERT_TRUE(write_file_durably(at("link"), "new"));
  EXPECT_EQ(*read_file(at("target")), "old");
  EXPECT_EQ(*read_file(at("link")), "new");
}

TEST_F(FilesTest, AFailedWriteKeepsTheOldContentAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(make_directories(at("taken/below")));
  const auto written = write_file_durably(at("taken"), "x");  // a directory cannot be renamed over
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, Kind::conflict);
  EXPECT_EQ(*list_directory(directory.path()), std::vector<std::string>{"taken"});
  EXPECT_EQ(write_file_durably(at("absent/x"), "x").error().kind, Kind::not_found);
}

// A limit on file size simulates the full disk: write() fails part-way through.
TEST_F(FilesTest, AFullDiskKeepsTheOldContentAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(write_file_durably(at("x"), "old"));
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(write_file_durably(at("x"), std::string(100'000, 'x')) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*read_file(at("x")), "old");
  EXPECT_EQ(*list_directory(directory.path()), std::vector<std::string>{"x"});
}

TEST_F(FilesTest, ReadingHasALimitAndNeverBlocks) {
  ASSERT_TRUE(write_file(at("x"), "12345"));
  EXPECT_EQ(*read_file(at("x"), 5), "12345");
  EXPECT_EQ(read_file(at("x"), 4).error().kind, Kind::exhausted);
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(at("pipe")).error().kind, Kind::invalid);
  EXPECT_EQ(read_file(at("absent")).error().kind, Kind::not_found);
  EXPECT_EQ(read_file(directory.path()).error().kind, Kind::conflict);
  EXPECT_NE(read_file("/proc/self/status")->find("Pid:"), std::string::npos);
  EXPECT_EQ(read_file("/proc/self/status", 10).error().kind, Kind::exhausted);
}

TEST_F(FilesTest, ReadsNumbers) {
  ASSERT_TRUE(write_file(at("number"), "17\n"));
  EXPECT_EQ(read_number(at("number")), 17);
  ASSERT_TRUE(write_file(at("text"), "max\n"));
  EXPECT_FALSE(read_number(at("text")));
  EXPECT_FALSE(read_number(at("absent")));
}

TEST_F(FilesTest, MakesMissingDirectories) {
  ASSERT_TRUE(make_directories(at("a/b/c"), 0700));
  ASSERT_TRUE(make_directories(at("a/b/c/"), 0700));
  EXPECT_EQ(mode_of(at("a/b")), 0700u);
  ASSERT_TRUE(write_file(at("a/file"), ""));
  EXPECT_EQ(make_directories(at("a/file/x")).error().kind, Kind::conflict);
  ASSERT_EQ(::symlink("a", at("link").c_str()), 0);
  EXPECT_TRUE(make_directories(at("link/d")));
  EXPECT_TRUE(exists(at("a/d")));
}

TEST_F(FilesTest, RemovingDoesNotFollowLinks) {
  ASSERT_TRUE(make_directories(at("keep")));
  ASSERT_TRUE(write_file(at("keep/me"), "x"));
  ASSERT_TRUE(make_directories(at("tree/a/b")));
  ASSERT_EQ(::symlink(at("keep").c_str(), at("tree/a/link").c_str()), 0);
  ASSERT_EQ(::symlink(at("keep").c_str(), at("link").c_str()), 0);
  ASSERT_TRUE(remove_all(at("tree")));
  ASSERT_TRUE(remove_all(at("link")));
  EXPECT_EQ(*list_directory(directory.path()), std::vector<std::string>{"keep"});
  EXPECT_TRUE(exists(at("keep/me")));
  EXPECT_TRUE(remove_all(at("tree")));
  EXPECT_TRUE(remove_all(at("tree/a/b")));
  EXPECT_EQ(remove_all("/").error().kind, Kind::invalid);
  EXPECT_EQ(remove_all(at("..")).error().kind, Kind::invalid);
}

TEST_F(FilesTest, RemovesTreesOfAnyDepth) {
  ASSERT_TRUE(make_directories(at("tree/.removing-0")));
  int descriptor = ::open(at("tree").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  constexpr int kDepth = 3000;  // its path exceeds PATH_MAX, its depth the limit of descriptors
  for (int i = 0; i < kDepth; i++) {
    ASSERT_EQ(::mkdirat(descriptor, "a-directory", 0700), 0);
    const int next = ::openat(descriptor, "a-directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(descriptor);
    descriptor = next;
  }
  ::close(descriptor);
  const auto removed = remove_all(at("tree"));
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(exists(at("tree")));
}

TEST_F(FilesTest, RemovesDirectoriesThatDenyTheirOwner) {
  ASSERT_TRUE(make_directories(at("tree/closed/below")));
  ASSERT_EQ(::chmod(at("tree/closed/below").c_str(), 0), 0);
  ASSERT_EQ(::chmod(at("tree/closed").c_str(), 0), 0);
  EXPECT_TRUE(remove_all(at("tree")));
}

TEST_F(FilesTest, RemovingStopsAtMounts) {
  ASSERT_TRUE(make_directories(at("mounted")));
  ASSERT_TRUE(write_file(at("mounted/me"), "x"));
  ASSERT_TRUE(make_directories(at("tree/mount")));
  ASSERT_TRUE(make_directories(at("tree/other")));
  if (::mount(at("mounted").c_str(), at("tree/mount").c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "mounting is not permitted";
  const auto removed = remove_all(at("tree"));
  const auto mount_itself = remove_all(at("tree/mount"));
  ::umount2(at("tree/mount").c_str(), MNT_DETACH);
  ASSERT_FALSE(removed);
  EXPECT_NE(removed.error().message.find("tree/mount"), std::string::npos)
      << removed.error().message;
  EXPECT_EQ(mount_itself.error().kind, Kind::unavailable);
  EXPECT_TRUE(exists(at("mounted/me")));
  EXPECT_FALSE(exists(at("tree/other")));
  EXPECT_TRUE(remove_all(at("tree")));
}

TEST_F(FilesTest, ALockExcludesWithinTheProcess) {
  EXPECT_FALSE(FileLock::held(at("lock")));
  {
    const auto lock = FileLock::take(at("lock"));
    ASSERT_TRUE(lock);
    EXPECT_TRUE(FileLock::held(at("lock")));
    const auto second = FileLock::take(at("lock"));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, Kind::conflict);
    EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
  }
  EXPECT_FALSE(FileLock::held(at("lock")));
  EXPECT_TRUE(FileLock::take(at("lock")));
}

TEST_F(FilesTest, ALockExcludesOtherProcessesUntilItsHolderEnds) {
  int to_child[2], from_child[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(from_child), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = FileLock::take(at("lock"));
    char byte = lock ? 'y' : 'n';
    if (::write(from_child[1], &byte, 1) == 1) {
      ::close(to_child[1]);
      (void)!::read(to_child[0], &byte, 1);  // until the parent kills it
    }
    ::_exit(0);
  }
  char taken = 0;
  ASSERT_EQ(::read(from_child[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  EXPECT_TRUE(FileLock::held(at("lock")));
  const auto refused = FileLock::take(at("lock"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(std::to_string(child)), std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(FileLock::held(at("lock")));
  EXPECT_TRUE(FileLock::take(at("lock")));
  for (const int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) ::close(end);
}

TEST_F(FilesTest, TakeAfterDeathWaitsForTheChildOfADeadHolder) {
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto lock = FileLock::take(at("lock"));
    if (::fork() == 0) {
      ::usleep(300'000);
      ::_exit(0);
    }
    ::_exit(lock ? 0 : 1);
  }
  int status = 0;
  ::waitpid(parent, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_FALSE(FileLock::take(at("lock"))) << "the child holds it";
  const auto lock = FileLock::take_after_death(at("lock"), 60s);
  EXPECT_TRUE(lock);
  const auto refused = FileLock::take_after_death(at("lock"), 60s);
  ASSERT_FALSE(refused) << "fails at once, because the holder is alive";
  EXPECT_EQ(refused.error().kind, Kind::conflict);
}

TEST_F(FilesTest, MovingALockKeepsItLocked) {
  auto first = FileLock::take(at("one"));
  auto second = FileLock::take(at("two"));
  ASSERT_TRUE(first && second);
  *first = std::move(*second);
  EXPECT_FALSE(FileLock::held(at("one")));
  EXPECT_TRUE(FileLock::held(at("two")));
}

}  // namespace
}  // namespace trainyard::os
