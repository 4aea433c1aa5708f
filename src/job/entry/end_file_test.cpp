#include "entry/end_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/temporary_directory.hpp"

namespace trainyard::entry {
namespace {

class EndFile : public testing::Test {
 protected:
  EndFile() { EXPECT_TRUE(os::write_file(path("precious"), "precious")); }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  os::TemporaryDirectory directory_;
  const os::File base_{::open(directory_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(EndFile, HasTheResultOfTheRun) {
  ASSERT_TRUE(write_end(base_, 0, ""));
  EXPECT_TRUE(os::exists(path("output/success")));
  ASSERT_TRUE(write_end(base_, 1, "a longer reason"));
  ASSERT_TRUE(write_end(base_, 1, "the reason"));
  EXPECT_EQ(*os::read_file(path("output/failure")), "the reason");
}

TEST_F(EndFile, IsNotWrittenThroughALink) {
  ASSERT_TRUE(os::make_directories(path("output")));
  ASSERT_EQ(::symlink("../precious", path("output/failure").c_str()), 0);
  EXPECT_EQ(write_end(base_, 1, "the reason").error().kind, Kind::invalid);
  EXPECT_EQ(*os::read_file(path("precious")), "precious");
}

TEST_F(EndFile, IsNotWrittenBelowALink) {
  ASSERT_TRUE(os::make_directories(path("elsewhere")));
  ASSERT_EQ(::symlink("elsewhere", path("output").c_str()), 0);
  EXPECT_EQ(write_end(base_, 1, "the reason").error().kind, Kind::invalid);
  EXPECT_EQ(os::list_directory(path("elsewhere"))->size(), 0u);
}

// Opening it for writing would wait for a reader that never comes.
TEST_F(EndFile, DoesNotWaitAtAFifo) {
  ASSERT_TRUE(os::make_directories(path("output")));
  ASSERT_EQ(::mkfifo(path("output/failure").c_str(), 0666), 0);
  EXPECT_EQ(write_end(base_, 1, "the reason").error().kind, Kind::invalid);
}

}  // namespace
}  // namespace trainyard::entry
