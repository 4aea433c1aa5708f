#include "cli/tensorboard/own_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "objects/memory.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::cli::tensorboard {
namespace {

const std::string kEvents = "train/events.out.tfevents.1.algo-1.7.0";

class TensorboardOwnFiles : public testing::Test {
 protected:
  TensorboardOwnFiles() { EXPECT_TRUE(store_->create_bucket("data", "eu-west-1")); }
  void put(const std::string& rest, const std::string& content) {
    ASSERT_TRUE(objects::write_all(*store_, "data", "board/mnist/" + rest, content));
  }
  std::vector<std::string> fetch() {
    const auto left_out = files_.fetch(*store_, [] { return true; });
    EXPECT_TRUE(left_out) << left_out.error().message;
    return left_out ? *left_out : std::vector<std::string>();
  }
  std::string path(const std::string& name) const { return directory_.path() + "/own/" + name; }
  std::string content(const std::string& name) const {
    const auto read = os::read_file(path(name));
    return read ? *read : "(none)";
  }

  TestClock clock_{from_milliseconds(1'700'000'000'000)};
  SeededRandom random_{1};
  const os::TemporaryDirectory directory_;
  std::unique_ptr<objects::Objects> store_ = objects::make_memory(clock_, random_);
  OwnFiles files_ = *OwnFiles::open({"data", "board/mnist"}, directory_.path() + "/own");
};

TEST_F(TensorboardOwnFiles, AreDownloadedInTheirDirectories) {
  put(kEvents, "events");
  put("plugins/profile/1/host.trace", "trace");
  put("empty", "");
  put("folder/", "");
  ASSERT_TRUE(objects::write_all(*store_, "data", "board/mnist-2/other", "no"));
  EXPECT_TRUE(fetch().empty());
  EXPECT_EQ(content(kEvents), "events");
  EXPECT_EQ(content("plugins/profile/1/host.trace"), "trace");
  EXPECT_EQ(content("empty"), "");
  EXPECT_EQ(os::list_directory(path(""))->size(), 3u);
}

// TensorBoard holds an event file open and continues where it was.
TEST_F(TensorboardOwnFiles, AppendToEventFiles) {
  put(kEvents, "one");
  fetch();
  const auto held = os::File(::open(path(kEvents).c_str(), O_RDONLY));
  ASSERT_TRUE(os::write_file(path("mine"), "the user's own"));
  put(kEvents, "one two");
  put("graph", "a");
  fetch();
  char bytes[16];
  ASSERT_EQ(::pread(held.descriptor(), bytes, sizeof bytes, 0), 7);
  EXPECT_EQ(std::string(bytes, 7), "one two");
  put(kEvents, "new");
  put("graph", "b");
  EXPECT_TRUE(fetch().empty());
  EXPECT_EQ(content(kEvents), "new") << "another program has replaced it";
  EXPECT_EQ(content("graph"), "b");
  EXPECT_EQ(content("mine"), "the user's own");
}

TEST_F(TensorboardOwnFiles, AreNotReadAgainIfUnchanged) {
  put(kEvents, "one");
  fetch();
  ASSERT_TRUE(os::write_file(path(kEvents), "changed here"));
  fetch();
  EXPECT_EQ(content(kEvents), "changed here");
}

TEST_F(TensorboardOwnFiles, ReplaceFilesOfAnEarlierRun) {
  ASSERT_TRUE(os::make_directories(path("train")));
  ASSERT_TRUE(os::write_file(path(kEvents), "a longer one of an earlier run"));
  put(kEvents, "one");
  fetch();
  EXPECT_EQ(content(kEvents), "one");
}

TEST_F(TensorboardOwnFiles, NeverLeaveTheDirectory) {
  const std::string outside = directory_.path() + "/outside";
  ASSERT_TRUE(os::make_directories(outside));
  ASSERT_EQ(::symlink(outside.c_str(), path("link").c_str()), 0);
  for (const char* rest : {"../evil", "a/../../evil", "/evil", "a//b", "./a", "link/evil", "link"})
    put(rest, "evil");
  put("x", "file");
  put("x/y", "below a file");
  put("\x1b[2J/../z", "evil");
  const auto left_out = fetch();
  EXPECT_EQ(left_out.size(), 9u);
  for (const auto& each : left_out) {
    EXPECT_NE(each.find(" is left out: "), std::string::npos) << each;
    EXPECT_EQ(each.find('\x1b'), std::string::npos) << each;
  }
  EXPECT_TRUE(fetch().empty()) << "each is named once";
  EXPECT_TRUE(os::list_directory(outside)->empty());
  EXPECT_EQ(os::list_directory(directory_.path())->size(), 2u) << "own and outside";
  EXPECT_EQ(content("x"), "file");
}

TEST_F(TensorboardOwnFiles, ContinueAnInterruptedDownload) {
  const std::string all = std::string(300 << 10, 'a') + "end";
  put(kEvents, all);
  int pieces = 0;
  const auto ended = files_.fetch(*store_, [&] { return ++pieces < 2; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, Kind::cancelled);
  EXPECT_LT(content(kEvents).size(), all.size());
  fetch();
  EXPECT_EQ(content(kEvents), all);
}

TEST_F(TensorboardOwnFiles, ReportAMissingBucket) {
  OwnFiles files = *OwnFiles::open({"absent", "x"}, directory_.path() + "/absent");
  const auto left_out = files.fetch(*store_, [] { return true; });
  ASSERT_FALSE(left_out);
  EXPECT_EQ(left_out.error().kind, Kind::not_found);
}

TEST(TensorboardOwnFilesNames, MustBePlainPaths) {
  EXPECT_EQ(*path_of_own_file("a/b..c/.d"), "a/b..c/.d");
  for (const std::string& rest : {std::string("a/.."), std::string("a\0b", 3),
                                  std::string(300, 'a'), std::string(4000, '/'), std::string()})
    EXPECT_FALSE(path_of_own_file(rest)) << rest;
}

}  // namespace
}  // namespace trainyard::cli::tensorboard
