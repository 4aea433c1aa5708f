#include "os/machine_files.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

class MachineFilesTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  TemporaryDirectory directory_;
  MachineFiles files_;
};

TEST_F(MachineFilesTest, AppendsAndTruncates) {
  auto file = *files_.open_append(path("a"), 0600);
  ASSERT_TRUE(file->append("one two"));
  ASSERT_TRUE(file->truncate(4));
  ASSERT_TRUE(file->append("three"));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(*files_.read(path("a"), 100), "one three");
  // Opening it again continues at its end.
  ASSERT_TRUE((*files_.open_append(path("a"), 0600))->append("!"));
  EXPECT_EQ(*files_.read(path("a"), 100), "one three!");
}

TEST_F(MachineFilesTest, ReadsAPartOfAFile) {
  ASSERT_TRUE(files_.write(path("a"), "0123456789", 0600));
  EXPECT_EQ(*files_.read_at(path("a"), 3, 4), "3456");
  EXPECT_EQ(*files_.read_at(path("a"), 8, 4), "89");
  EXPECT_EQ(*files_.read_at(path("a"), 20, 4), "");
  EXPECT_EQ(files_.read_at(path("b"), 0, 4).error().kind, Kind::not_found);
  EXPECT_EQ(files_.read(path("a"), 5).error().kind, Kind::exhausted);
}

TEST_F(MachineFilesTest, RenamesListsAndRemoves) {
  ASSERT_TRUE(files_.make_directories(path("d/e"), 0700));
  ASSERT_TRUE(files_.write(path("d/new"), "new", 0600));
  ASSERT_TRUE(files_.write(path("d/old"), "older", 0600));
  ASSERT_TRUE(files_.rename(path("d/new"), path("d/old")));
  EXPECT_EQ(*files_.read(path("d/old"), 100), "new");
  EXPECT_EQ(*files_.list_directory(path("d")), (std::vector<std::string>{"e", "old"}));
  EXPECT_TRUE(files_.sync_directory(path("d")));
  EXPECT_TRUE(files_.remove(path("d/absent")));
  EXPECT_TRUE(files_.remove(path("d/old")));
  EXPECT_FALSE(files_.exists(path("d/old")));
  EXPECT_TRUE(files_.remove_all(path("d")));
  EXPECT_FALSE(files_.exists(path("d")));
}

TEST_F(MachineFilesTest, AppendsAPartOnAnInjectedFullDisk) {
  NthFileFault faults(1, ENOSPC);
  MachineFiles files(&faults);
  auto file = *files.open_append(path("a"), 0600);
  faults.arm();
  const auto appended = file->append("12345678");
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().kind, Kind::exhausted);
  EXPECT_EQ(*files.read(path("a"), 100), "1234");
}

}  // namespace
}  // namespace trainyard::os
