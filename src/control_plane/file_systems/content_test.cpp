// Tests a file system's directory while jobs write to it.
#include "file_systems/content.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "os/temporary_directory.hpp"

namespace trainyard::file_systems {
namespace {

constexpr Instant kTime{Duration{1'795'167'900'123}};

struct ContentWorld {
  os::TemporaryDirectory directory;
  std::string root = directory.path() + "/root";
  std::string files = files_directory(root, "fs-1");

  Content open(const std::string& boot = "boot", bool unfinished = false) const {
    return *Content::open(root, "fs-1", boot, unfinished, {1234, 5678});
  }
  static Result<uint64_t> write(const Content& content, const std::string& path,
                                std::string_view text) {
    return content.write(path, kTime, 0, [text](std::span<char> piece) mutable -> Result<size_t> {
      const size_t count = std::min(piece.size(), text.size());
      std::memcpy(piece.data(), text.data(), count);
      text.remove_prefix(count);
      return count;
    });
  }
  static Files list(const Content& content, const std::vector<std::string>& paths = {},
                    std::vector<FileFailure>* skipped = nullptr) {
    return *content.list(paths, [&](FileFailure failure) {
      if (skipped) skipped->push_back(std::move(failure));
    });
  }
};

TEST(Content, WritesFilesThatAnyJobMayChange) {
  ContentWorld world;
  const Content content = world.open();
  EXPECT_EQ(*world.write(content, "a/b/c", "text"), 4u);
  EXPECT_EQ(*os::read_file(world.files + "/a/b/c"), "text");
  EXPECT_EQ(world.list(content), (Files{{"a/b/c", {4, kTime}}}));
  struct stat status = {};
  for (const auto& [path, mode] : {std::pair{"", 0777u}, {"/a", 0777u}, {"/a/b/c", 0666u}}) {
    ASSERT_EQ(::stat((world.files + path).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, mode) << path;
    if (::geteuid() == 0) {
      EXPECT_EQ(status.st_uid, 1234u) << path;
    }
  }
  EXPECT_EQ(*world.write(content, "a/b/c", "new"), 3u);
  EXPECT_EQ(*os::read_file(world.files + "/a/b/c"), "new");
  EXPECT_TRUE(os::list_directory(world.root + "/fs-1/work")->empty());
}

TEST(Content, StaysInItsDirectory) {
  ContentWorld world;
  const std::string outside = world.directory.path() + "/outside";
  ASSERT_TRUE(os::make_directories(outside));
  ASSERT_TRUE(os::write_file(outside + "/secret", "secret"));
  const Content content = world.open();
  // A job that writes to the file system may create these.
  ASSERT_EQ(::symlink(outside.c_str(), (world.files + "/link").c_str()), 0);
  ASSERT_EQ(::symlink((outside + "/secret").c_str(), (world.files + "/file").c_str()), 0);
  ASSERT_EQ(::mkfifo((world.files + "/fifo").c_str(), 0666), 0);
  EXPECT_FALSE(world.write(content, "link/new", "x"));
  EXPECT_FALSE(world.write(content, "../new", "x"));
  EXPECT_FALSE(world.write(content, "a/../../new", "x"));
  EXPECT_FALSE(content.make_directory("link/d"));
  EXPECT_FALSE(content.read("file"));
  EXPECT_FALSE(content.read("link/secret"));
  EXPECT_FALSE(content.read("fifo"));
  EXPECT_FALSE(content.remove("link/secret"));
  std::vector<FileFailure> skipped;
  EXPECT_TRUE(world.list(content, {}, &skipped).empty());
  EXPECT_EQ(skipped.size(), 3u);
  // A link is replaced, not followed.
  EXPECT_TRUE(world.write(content, "file", "mine"));
  EXPECT_EQ(*os::read_file(outside + "/secret"), "secret");
  EXPECT_EQ(*os::read_file(world.files + "/file"), "mine");
  EXPECT_EQ(os::list_directory(outside)->size(), 1u);
}

TEST(Content, DetectsFilesThatChangedSinceTheirExchange) {
  ContentWorld world;
  const Content content = world.open();
  const auto since = [&](const std::string& path) { return content.read(path)->unchanged_since; };
  ASSERT_TRUE(world.write(content, "a", "text"));
  if (since("a") == LastExchange::unknown) GTEST_SKIP() << "the disk keeps no extended attributes";
  EXPECT_EQ(since("a"), LastExchange::imported);
  ASSERT_EQ(std::rename((world.files + "/a").c_str(), (world.files + "/b").c_str()), 0);
  EXPECT_EQ(since("b"), LastExchange::unknown) << "the file was never exchanged";
  content.mark_exported("b", *content.read("b"));
  EXPECT_EQ(since("b"), LastExchange::exported);
  ASSERT_TRUE(os::write_file(world.files + "/b", "longer text"));
  EXPECT_EQ(since("b"), LastExchange::unknown);
  ASSERT_TRUE(os::write_file(world.files + "/of a job", "text"));
  EXPECT_EQ(since("of a job"), LastExchange::unknown);
}

TEST(Content, LeavesNothingOfAWriteThatFailed) {
  ContentWorld world;
  const Content content = world.open();
  const auto failed = content.write("a", kTime, 0, [first = true](std::span<char>) mutable {
    if (!std::exchange(first, false)) return Result<size_t>(unavailable("cut"));
    return Result<size_t>(size_t{100});
  });
  EXPECT_EQ(failed.error().message, "cut");
  EXPECT_TRUE(world.list(content).empty());
  EXPECT_TRUE(os::list_directory(world.root + "/fs-1/work")->empty());
}

TEST(Content, AnUnfinishedImportIsTrustedUntilTheNextBoot) {
  ContentWorld world;
  ASSERT_TRUE(world.write(world.open(), "a", "x"));
  ASSERT_TRUE(os::write_file(world.root + "/fs-1/work/7", "half"));
  EXPECT_EQ(world.list(world.open("boot", true)).size(), 1u);
  EXPECT_FALSE(os::exists(world.root + "/fs-1/work/7"));
  EXPECT_EQ(world.list(world.open("next boot", false)).size(), 1u);
  EXPECT_EQ(world.list(world.open("boot", true)).size(), 0u);
  ASSERT_TRUE(world.write(world.open(), "a", "x"));
  EXPECT_EQ(world.list(world.open("", true)).size(), 0u);  // the kernel has no name
}

TEST(Content, ListsAndRemovesNamedPaths) {
  ContentWorld world;
  const Content content = world.open();
  for (const char* path : {"a/1", "a/2", "b/3", "c"}) ASSERT_TRUE(world.write(content, path, path));
  EXPECT_EQ(world.list(content, {"a", "c"}).size(), 3u);
  std::vector<FileFailure> skipped;
  EXPECT_TRUE(world.list(content, {"none"}, &skipped).empty());
  EXPECT_EQ(skipped.size(), 1u);
  EXPECT_TRUE(content.remove("a/1"));
  EXPECT_TRUE(content.remove("a/1"));
  EXPECT_TRUE(content.remove("none/1"));
  EXPECT_EQ(world.list(content).size(), 3u);
  EXPECT_TRUE(remove_content(world.root, "fs-1"));
  EXPECT_TRUE(remove_content(world.root, "fs-1"));
  EXPECT_FALSE(os::exists(world.root + "/fs-1"));
}

TEST(Content, EndsAListThatIsLongerThanItsLimit) {
  ContentWorld world;
  const Content content = world.open();
  const std::string directory(200, 'd');
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(world.write(content, directory + "/" + std::to_string(i), ""));
  const auto ignore = [](const FileFailure&) {};
  const auto list = [&](const std::vector<std::string>& paths, size_t bytes_max) {
    return content.list(paths, ignore, {.bytes_max = bytes_max});
  };
  EXPECT_EQ(content.list({}, ignore)->size(), 100u);
  EXPECT_EQ(list({}, 100 * 400)->size(), 100u);
  EXPECT_EQ(list({}, 100 * 200).error().kind, Kind::exhausted);
  EXPECT_EQ(list({directory, directory}, 100 * 400).error().kind, Kind::exhausted)
      << "the limit applies to all paths together";
}

TEST(Content, EndsACancelledWalk) {
  ContentWorld world;
  const Content content = world.open();
  ASSERT_TRUE(world.write(content, "a/1", "x"));
  const WalkLimits cancelled{.cancelled = [] { return true; }};
  const auto ignore = [](const FileFailure&) {};
  EXPECT_EQ(content.list({}, ignore, cancelled).error().kind, Kind::cancelled);
  EXPECT_EQ(content.remove_below("a", cancelled).error().kind, Kind::cancelled);
  EXPECT_EQ(world.list(content).size(), 1u);
}

TEST(Content, RemovesTheFilesBelowADirectoryWithoutAListOfThem) {
  ContentWorld world;
  const Content content = world.open();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(world.write(content, "a/b/" + std::to_string(i), "x"));
  ASSERT_TRUE(world.write(content, "a/file", "x"));
  ASSERT_TRUE(world.write(content, "kept", "x"));
  ASSERT_EQ(::symlink("../kept", (world.files + "/a/link").c_str()), 0);
  ASSERT_TRUE(content.remove_below("a", {.bytes_max = 400}));
  EXPECT_EQ(world.list(content), (Files{{"kept", {1, kTime}}}));
  EXPECT_TRUE(content.remove_below("none"));
  EXPECT_TRUE(content.remove_below("kept"));
  EXPECT_TRUE(world.list(content).empty());
}

}  // namespace
}  // namespace trainyard::file_systems
