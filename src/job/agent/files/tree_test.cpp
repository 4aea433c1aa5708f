#include "agent/files/tree.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/temporary_directory.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kSecret = "of the machine";

// A directory "job" that a job may write, with a file "d/file", and next to it a file that the job
// must not reach: "machine/d/file".
class TreeTest : public testing::Test {
 protected:
  TreeTest() {
    for (const char* name : {"job/d/deep", "machine/d/deep"})
      EXPECT_TRUE(os::make_directories(path(name)));
    EXPECT_TRUE(os::write_file(path("job/d/file"), "of the job"));
    EXPECT_TRUE(os::write_file(path("machine/d/file"), kSecret, 0600));
    EXPECT_TRUE(os::write_file(path("machine/d/deep/file"), kSecret, 0600));
    tree_.emplace(*Tree::open(path("job")));
  }
  ~TreeTest() override { ::umount2(path("job/d").c_str(), MNT_DETACH); }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  void remove(const std::string& name) { ASSERT_TRUE(os::remove_all(path(name))); }
  void link(const std::string& target, const std::string& name) {
    ASSERT_EQ(::symlink(target.c_str(), path(name).c_str()), 0);
  }
  std::string met(const std::string& directory) const {
    std::string names;
    EXPECT_TRUE(tree_->walk(directory, [&](const Tree::Entry& entry) -> Result<void> {
      names += entry.path + " ";
      return {};
    }));
    return names;
  }
  // No call reads or changes a file of the machine.
  void expect_confined(const char* attack) {
    SCOPED_TRACE(attack);
    EXPECT_EQ(tree_->read_start("d/file", 100), "");
    EXPECT_FALSE(tree_->open_file("d/file"));
    (void)tree_->write("d/file", "overwritten");
    (void)tree_->create_file("d/new", os::IfThere::truncate);
    (void)tree_->touch("d/mark");
    (void)tree_->make("d/made/deep");
    (void)tree_->set_mode("d/deep", 0777);
    (void)tree_->make_link("d/deep/link", "/");
    (void)tree_->remove("d/file");
    EXPECT_EQ(*os::read_file(path("machine/d/file")), kSecret);
    EXPECT_EQ(*os::list_directory(path("machine/d")), (std::vector<std::string>{"deep", "file"}));
    EXPECT_EQ(os::list_directory(path("machine/d/deep"))->size(), 1u);
    struct stat status {};
    ASSERT_EQ(::stat(path("machine/d/deep").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0755u);
  }

  os::TemporaryDirectory directory_;
  std::optional<Tree> tree_;
};

TEST_F(TreeTest, ADirectoryThatBecameALinkIsRefused) {
  remove("job/d");
  link(path("machine/d"), "job/d");
  EXPECT_EQ(tree_->below("d").error().kind, Kind::invalid);
  EXPECT_EQ(tree_->make("d/x").error().kind, Kind::invalid);
  EXPECT_EQ(met("d"), "");
  EXPECT_FALSE(tree_->has_files("d"));
  expect_confined("absolute link");
  remove("job/d");
  link("../machine/d", "job/d");
  expect_confined("relative link");
  remove("job/d");
  link("/proc/self/root" + path("machine/d"), "job/d");
  expect_confined("magic link");
}

TEST_F(TreeTest, AFileThatBecameALinkIsRefused) {
  remove("job/d/file");
  link(path("machine/d/file"), "job/d/file");
  EXPECT_EQ(tree_->open_file("d/file").error().kind, Kind::invalid);
  EXPECT_EQ(tree_->create_file("d/file", os::IfThere::truncate).error().kind, Kind::invalid);
  expect_confined("link to a file");
}

TEST_F(TreeTest, APathWithDotDotIsRefused) {
  EXPECT_EQ(tree_->open_file("../machine/d/file").error().kind, Kind::invalid);
  EXPECT_EQ(tree_->open_file(path("machine/d/file")).error().kind, Kind::invalid);
  EXPECT_EQ(tree_->make("d/../../machine/x").error().kind, Kind::invalid);
  EXPECT_FALSE(tree_->write("../machine/d/file", "overwritten"));
  EXPECT_FALSE(tree_->touch("../machine/mark"));
  EXPECT_EQ(*os::read_file(path("machine/d/file")), kSecret);
}

// Includes mounts of the same file system, which device numbers do not tell: the tree is a mount of
// its own, without other mounts in it, and continues with the files beneath them.
TEST_F(TreeTest, MountsAreNotEntered) {
  const auto expect_own = [&](const char* mounted) {
    EXPECT_NE(tree_->read_start("d/file", 100), kSecret) << mounted;
    EXPECT_TRUE(tree_->write("d/file", "own")) << mounted;
    EXPECT_EQ(tree_->read_start("d/file", 100), "own") << mounted;
    EXPECT_EQ(*os::read_file(path("machine/d/file")), kSecret) << mounted;
  };
  ASSERT_EQ(::mount(path("machine/d").c_str(), path("job/d").c_str(), nullptr, MS_BIND, nullptr),
            0);
  expect_own("bind mount");
  ASSERT_EQ(::umount2(path("job/d").c_str(), MNT_DETACH), 0);
  ASSERT_EQ(::mount("tmpfs", path("job/d").c_str(), "tmpfs", 0, "size=64k"), 0);
  ASSERT_TRUE(os::write_file(path("job/d/file"), kSecret));
  expect_own("tmpfs");
  EXPECT_EQ(*os::read_file(path("job/d/file")), kSecret);
  ASSERT_EQ(::umount2(path("job/d").c_str(), MNT_DETACH), 0);
  ASSERT_EQ(::mount(path("machine/d/file").c_str(), path("job/d/file").c_str(), nullptr, MS_BIND,
                    nullptr),
            0);
  expect_own("bind mount of a file");
  ASSERT_EQ(::umount2(path("job/d/file").c_str(), MNT_DETACH), 0);
}

// None of them is opened: an open FIFO would wait, or wake its other end, and opening a device may
// have any effect.
TEST_F(TreeTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(::mkfifo(path("job/fifo").c_str(), 0666), 0);
  ASSERT_EQ(::mknod(path("job/zero").c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  ASSERT_EQ(::mknod(path("job/disk").c_str(), S_IFBLK | 0666, makedev(254, 250)), 0);
  for (const char* name : {"fifo", "zero", "disk", "d"}) {
    EXPECT_EQ(tree_->open_file(name).error().kind, Kind::invalid) << name;
    EXPECT_EQ(tree_->create_file(name, os::IfThere::keep_content).error().kind, Kind::invalid)
        << name;
    EXPECT_FALSE(tree_->write(name, "x")) << name;
    EXPECT_EQ(tree_->read_start(name, 10), "") << name;
    EXPECT_TRUE(tree_->touch(name)) << name << ": something is there";
  }
  EXPECT_EQ(tree_->create_file("zero/x", os::IfThere::truncate).error().kind, Kind::not_found);
}

// The descriptor stays with the opened file, wherever names lead by now.
TEST_F(TreeTest, StaysOnItsDirectoryWhenTheNameOrAParentIsReplaced) {
  ASSERT_EQ(::rename(path("job").c_str(), path("moved").c_str()), 0);
  link(path("machine"), "job");
  EXPECT_EQ(tree_->read_start("d/file", 100), "of the job");
  const auto below = tree_->below("d");
  ASSERT_EQ(::rename(path("moved/d").c_str(), path("moved/e").c_str()), 0);
  link(path("machine/d"), "moved/d");
  EXPECT_EQ(below->read_start("file", 100), "of the job");
  expect_confined("after both moved");
}

// Names are read into memory, and hard links cost a job next to nothing.
TEST_F(TreeTest, AWalkReadsALimitedNumberOfNames) {
  ASSERT_TRUE(os::write_file(path("job/d/deep/x"), "x"));
  std::string seen;
  const auto visitor = [&](const Tree::Entry& entry) -> Result<void> {
    seen += entry.path + " ";
    return {};
  };
  EXPECT_TRUE(tree_->walk("", visitor, 4));
  EXPECT_EQ(seen, "d d/deep d/deep/x d/file ");
  for (const size_t names_max : {size_t(0), size_t(1), size_t(2), size_t(3)})
    EXPECT_EQ(tree_->walk("", visitor, names_max).error().kind, Kind::exhausted) << names_max;
}

// A job that removes its directory and makes it again continues with the new one.
TEST_F(TreeTest, OpensADirectoryThatTheJobMadeAgain) {
  remove("job/d");
  EXPECT_EQ(tree_->below("d").error().kind, Kind::not_found);
  ASSERT_TRUE(os::make_directories(path("job/d")));
  ASSERT_TRUE(os::write_file(path("job/d/file"), "again"));
  EXPECT_EQ(tree_->read_start("d/file", 100), "again");
}

// Hard links between its own files are a job's way to keep a "last" next to its checkpoints.
TEST_F(TreeTest, AHardLinkToAnOwnFileIsAFile) {
  ASSERT_EQ(::link(path("job/d/file").c_str(), path("job/last").c_str()), 0);
  EXPECT_EQ(tree_->read_start("last", 100), "of the job");
}

// link() is refused between two mounts even of one file system: so a job cannot link files that it
// did not write.
TEST_F(TreeTest, AHardLinkDoesNotCrossMounts) {
  ASSERT_EQ(::mount(path("job/d").c_str(), path("job/d").c_str(), nullptr, MS_BIND, nullptr), 0);
  EXPECT_EQ(::link(path("machine/d/file").c_str(), path("job/d/stolen").c_str()), -1);
  EXPECT_EQ(errno, EXDEV);
}

TEST_F(TreeTest, FilesAreMadeOverwrittenAndKept) {
  ASSERT_TRUE(tree_->make("a/b"));
  ASSERT_TRUE(tree_->write("a/b/file", "long content"));
  ASSERT_TRUE(tree_->write("a/b/file", "short"));
  EXPECT_EQ(*os::read_file(path("job/a/b/file")), "short");
  ASSERT_TRUE(tree_->create_file("a/b/file", os::IfThere::keep_content));
  EXPECT_EQ(*os::read_file(path("job/a/b/file")), "short");
  EXPECT_EQ(tree_->create_file("absent/file", os::IfThere::truncate).error().kind, Kind::not_found);
  ASSERT_TRUE(tree_->make_link("a/link", "b"));
  ASSERT_TRUE(tree_->make_link("a/link", "c"));
  ASSERT_TRUE(tree_->set_mode("a", 0777));
  EXPECT_GT(*tree_->free_bytes(), 0u);
}

}  // namespace
}  // namespace trainyard::agent
