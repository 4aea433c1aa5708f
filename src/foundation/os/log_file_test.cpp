#include "os/log_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

struct LogFiles : testing::Test {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/server.log";

  std::unique_ptr<LogFile> open(uint64_t bytes_max, int64_t files_max, FileFaults* faults) {
    auto log = LogFile::open({path, bytes_max, files_max}, faults);
    EXPECT_TRUE(log) << log.error().message;
    return *std::move(log);
  }
  std::string text(const std::string& suffix = "") { return *read_file(path + suffix); }
};

// Fails all steps of one kind while it is on.
struct Failing final : FileFaults {
  explicit Failing(FileStep failing) : step(failing) {}
  FileFault before(FileStep now, const std::string&, size_t bytes) override {
    if (!on || now != step) return {};
    ++failed;
    return {ENOSPC, now == FileStep::write ? bytes / 2 : 0};
  }
  const FileStep step;
  bool on = true;
  int failed = 0;
};

TEST_F(LogFiles, AppendsToAnExistingFile) {
  ASSERT_TRUE(write_file(path, "before\n"));
  ASSERT_TRUE(open(1000, 3, nullptr)->write("one"));
  ASSERT_TRUE(open(1000, 3, nullptr)->write("two"));
  EXPECT_EQ(text(), "before\none\ntwo\n");
}

TEST_F(LogFiles, ANewFileIsNotReadableByEveryone) {
  ASSERT_TRUE(open(1000, 3, nullptr)->write("one"));
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0007, 0u);
}

TEST_F(LogFiles, AFullFileIsRotatedAndTheOldestRemoved) {
  const auto log = open(8, 3, nullptr);
  for (const char* line : {"aaa", "bbb", "ccc", "ddd", "eee", "fff", "ggg"})
    ASSERT_TRUE(log->write(line));
  EXPECT_EQ(text(), "ggg\n");
  EXPECT_EQ(text(".1"), "eee\nfff\n");
  EXPECT_EQ(text(".2"), "ccc\nddd\n");
  EXPECT_EQ(list_directory(directory.path())->size(), 3u);
}

TEST_F(LogFiles, ALineLongerThanTheLimitGetsItsOwnFile) {
  const auto log = open(8, 3, nullptr);
  for (const char* line : {"aaa", "a line of many bytes", "bbb"}) ASSERT_TRUE(log->write(line));
  EXPECT_EQ(text(".2"), "aaa\n");
  EXPECT_EQ(text(".1"), "a line of many bytes\n");
  EXPECT_EQ(text(), "bbb\n");
}

TEST_F(LogFiles, ASingleFileIsTruncatedWhenFull) {
  const auto log = open(8, 1, nullptr);
  for (const char* line : {"aaa", "bbb", "ccc"}) ASSERT_TRUE(log->write(line));
  EXPECT_EQ(text(), "ccc\n");
  EXPECT_EQ(list_directory(directory.path())->size(), 1u);
}

TEST_F(LogFiles, AFullDiskDropsWholeLinesAndTheirNumberIsLogged) {
  Failing full(FileStep::write);
  full.on = false;
  const auto log = open(1000, 3, &full);
  ASSERT_TRUE(log->write("before"));
  full.on = true;
  EXPECT_EQ(log->write("lost 1").error().kind, Kind::exhausted);
  EXPECT_FALSE(log->write("lost 2"));
  EXPECT_EQ(text(), "before\n") << "no part of a line";
  full.on = false;
  ASSERT_TRUE(log->write("after"));
  EXPECT_EQ(text(), "before\n# missing here: 2 lines: writing " + path +
                        ": No space left on device\nafter\n");
  ASSERT_TRUE(log->write("later"));
  EXPECT_TRUE(text().ends_with("after\nlater\n"));
}

TEST_F(LogFiles, WritesCompleteLinesAfterEachDiskFault) {
  int struck = 0;
  for (uint64_t nth = 1; nth <= 40; ++nth) {
    for (int number = 0; number < 4; ++number)
      ASSERT_TRUE(remove_all(number == 0 ? path : path + "." + std::to_string(number)));
    NthFileFault fault(nth, ENOSPC);
    const auto log = open(30, 3, &fault);
    fault.arm();
    for (int i = 0; i < 20; ++i) (void)log->write("line " + std::to_string(i));
    // The fault may affect the last line, which is then written again.
    const bool written = log->write("last") || log->write("last");
    ASSERT_TRUE(written);
    struck += fault.struck();
    std::string all;
    for (const char* suffix : {".2", ".1", ""})
      if (exists(path + suffix)) all += text(suffix);
    EXPECT_TRUE(all.ends_with("\nlast\n")) << nth << "\n" << all;
    EXPECT_TRUE(all.find("line 19\n") != std::string::npos ||
                all.find("# missing here: 1 line: ") != std::string::npos)
        << nth << "\n"
        << all;
  }
  EXPECT_GT(struck, 20);
}

TEST_F(LogFiles, AFileThatCannotBeRotatedKeepsGrowing) {
  Failing names(FileStep::rename);
  const auto log = open(8, 3, &names);
  for (const char* line : {"aaa", "bbb", "ccc", "ddd"}) ASSERT_TRUE(log->write(line));
  EXPECT_EQ(text(), "aaa\nbbb\nccc\nddd\n");
  EXPECT_LE(names.failed, 2) << "not tried for each line";
  names.on = false;
  for (const char* line : {"eee", "fff"}) ASSERT_TRUE(log->write(line));
  EXPECT_TRUE(exists(path + ".1"));
}

TEST_F(LogFiles, ReopenMakesANewFileAfterAMove) {
  const auto log = open(1000, 3, nullptr);
  ASSERT_TRUE(log->write("one"));
  ASSERT_EQ(::rename(path.c_str(), (path + ".moved").c_str()), 0);
  ASSERT_TRUE(log->write("two"));
  ASSERT_TRUE(log->reopen());
  ASSERT_TRUE(log->write("three"));
  EXPECT_EQ(text(".moved"), "one\ntwo\n");
  EXPECT_EQ(text(), "three\n");
}

TEST_F(LogFiles, AFailedReopenKeepsTheOpenFile) {
  Failing creating(FileStep::create);
  creating.on = false;
  const auto log = open(1000, 3, &creating);
  creating.on = true;
  EXPECT_FALSE(log->reopen());
  ASSERT_TRUE(log->write("one"));
  EXPECT_EQ(text(), "one\n");
}

TEST_F(LogFiles, ReportsAMissingDirectory) {
  EXPECT_EQ(LogFile::open({directory.path() + "/no/server.log"}).error().kind, Kind::not_found);
}

TEST_F(LogFiles, WritesWholeLinesFromSeveralThreads) {
  const auto log = open(2000, 100, nullptr);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) EXPECT_TRUE(log->write(std::string(20, char('a' + thread))));
    });
  for (auto& thread : threads) thread.join();
  size_t lines = 0;
  const auto names = *list_directory(directory.path());
  for (const auto& name : names) {
    const std::string text = *read_file(directory.path() + "/" + name);
    for (size_t at = 0; const char c : text) {
      if (c == '\n') {
        EXPECT_EQ(at, 20u);
        at = 0, ++lines;
      } else {
        ++at;
      }
    }
  }
  EXPECT_EQ(lines, 800u);
}

}  // namespace
}  // namespace trainyard::os
