// Uses real processes of this machine's shell, which every machine has.
#include "entry/children.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <csignal>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::entry {
namespace {

constexpr auto kEndsWithin = std::chrono::minutes(2);  // the machine may be busy

class ChildrenTest : public testing::Test {
 protected:
  Command shell(const std::string& line) const {
    return {{"sh", "-c", line}, {{"PATH", "/usr/bin:/bin"}}, directory_.path()};
  }
  void start(const std::string& line, Children::Kind kind = {}) {
    const auto started = children_.start(shell(line), kind);
    ASSERT_TRUE(started) << started.error().message;
  }
  // Waits for the next process that ends.
  Children::Exit wait() {
    // The limit is a time, not a number of rounds: with heavy output, each round returns at once
    // with a few lines.
    const auto deadline = std::chrono::steady_clock::now() + kEndsWithin;
    while (std::chrono::steady_clock::now() < deadline) {
      std::vector<pollfd> waits = {{signals_.descriptor(), POLLIN, 0}};
      children_.add_waits(waits);
      ::poll(waits.data(), waits.size(), 100);
      signals_.take();
      children_.pump();
      for (auto& exit : children_.reap()) return exit;
    }
    ADD_FAILURE() << "nothing ended";
    return {};
  }
  std::string written(const std::string& name) {
    const auto text = os::read_file(directory_.path() + "/" + name);
    return text ? *text : "";
  }

  os::TemporaryDirectory directory_;
  Signals signals_;
  Children children_;
};

TEST_F(ChildrenTest, ReportTheirExitAndLastOutput) {
  start("echo one >&2; echo two >&2; exit 7");
  const auto exit = wait();
  EXPECT_EQ(exit.code, 7);
  EXPECT_EQ(exit.printed.errors, "one\ntwo\n");
  EXPECT_TRUE(exit.command.starts_with("sh -c echo one"));
  EXPECT_TRUE(children_.empty());
  start("kill -SEGV $$");
  EXPECT_EQ(wait().code, 128 + SIGSEGV);
}

TEST_F(ChildrenTest, KeepOnlyTheEndOfLongOutput) {
  start(
      "i=0; while [ $i -lt 4000 ]; do echo line $i of many; i=$((i+1)); done >&2; echo end >&2; "
      "exit 1");
  const auto exit = wait();
  EXPECT_LE(exit.printed.errors.size(), 16u << 10);
  EXPECT_TRUE(exit.printed.errors.ends_with("line 3999 of many\nend\n"));
}

TEST_F(ChildrenTest, KeepTheEndOfBothStreams) {
  start("echo one; echo two >&2; exit 3");
  const auto exit = wait();
  EXPECT_EQ(exit.printed.errors, "two\n");
  EXPECT_NE(exit.printed.all.find("one\n"), std::string::npos) << exit.printed.all;
  EXPECT_NE(exit.printed.all.find("two\n"), std::string::npos) << exit.printed.all;
}

// A process that it leaves behind may print for as long as the container runs.
TEST_F(ChildrenTest, DoNotWaitForTheOutputOfAnOrphan) {
  start("(while :; do echo flood; done) & exit 5");
  EXPECT_EQ(wait().code, 5);
}

TEST_F(ChildrenTest, ForwardChangedLines) {
  std::vector<std::string> lines;
  Children::Kind kind;
  kind.change_line = [&](std::string_view line) {
    lines.emplace_back(line);
    return std::string();
  };
  start("printf 'a\\nb'; printf 'c\\n'", kind);
  EXPECT_EQ(wait().code, 0);
  EXPECT_EQ(lines, (std::vector<std::string>{"a", "bc"}));
}

TEST_F(ChildrenTest, AreStoppedAloneOrWithTheirGroup) {
  Children::Kind group;
  group.signal_group = true;
  // The shell ends when its child has ended, so both must get the signal.
  start(
      "trap 'wait; exit 9' TERM; (trap 'echo told > inner; exit' TERM; touch ready; while :; do "
      "sleep 0.05; done) & wait; wait",
      group);
  const auto deadline = std::chrono::steady_clock::now() + kEndsWithin;
  while (std::chrono::steady_clock::now() < deadline && !os::exists(directory_.path() + "/ready"))
    ::poll(nullptr, 0, 10);
  children_.request_end();
  EXPECT_EQ(wait().code, 9);
  EXPECT_EQ(written("inner"), "told\n");
}

TEST_F(ChildrenTest, InheritNothing) {
  start("ls /proc/self/fd | wc -l > fds; cat; env > env");
  EXPECT_EQ(wait().code, 0);
  EXPECT_EQ(written("fds"), "4\n") << "the three streams, and what ls reads";
  EXPECT_EQ(written("env").find("HOME="), std::string::npos);
}

TEST_F(ChildrenTest, RunOnTheirProcessors) {
  cpu_set_t ours, after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &ours)) last = cpu;
  Command command = shell("grep Cpus_allowed_list /proc/self/status > cpus");
  command.cpus = {last, CPU_SETSIZE - 1};
  ASSERT_TRUE(children_.start(command, {}));
  EXPECT_EQ(wait().code, 0);
  EXPECT_EQ(written("cpus"), "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&ours, &after)) << "our own affinity is unchanged";
  command.cpus = {CPU_SETSIZE - 1};  // a processor that we may not use
  ASSERT_TRUE(children_.start(command, {}));
  EXPECT_EQ(wait().code, 0);
}

TEST_F(ChildrenTest, NameAMissingProgram) {
  const auto started = children_.start({{"no-such-program"}, {{"PATH", "/usr/bin:/bin"}}, "/"}, {});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, Kind::not_found);
  EXPECT_NE(started.error().message.find("no-such-program"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::entry
