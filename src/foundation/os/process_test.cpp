#include "os/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <sstream>
#include <thread>

#include "base/text.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::os {
namespace {

Command shell(const std::string& script) { return {.arguments = {"/bin/sh", "-c", script}}; }

// Waits until the condition holds, for a minute at most.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 6000; i++) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(Process, ReturnsTheProgramsOutput) {
  Command command = shell("cat; echo oops >&2; echo $COLOUR; pwd; exit 3");
  command.input = "in\n";
  command.environment["COLOUR"] = "green";
  command.working_directory = "/usr";
  const auto outcome = run(command);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->code, 3);
  EXPECT_EQ(outcome->output, "in\ngreen\n/usr\n");
  EXPECT_EQ(outcome->errors, "oops\n");
  EXPECT_EQ(run(shell("kill -TERM $$"))->code, 128 + SIGTERM);
}

TEST(Process, InheritsOnlyTheNamedVariables) {
  ASSERT_EQ(::setenv("TRAINYARD_TEST_SECRET", "s3cret", 1), 0);
  Command command =
      shell("echo \"$TRAINYARD_TEST_SECRET$COLOUR\"; command -v sh >/dev/null && echo found");
  command.environment["COLOUR"] = "green";
  EXPECT_EQ(run(command)->output, "s3cretgreen\nfound\n");
  command.inherited = {"PATH"};
  EXPECT_EQ(run(command)->output, "green\nfound\n");
  ::unsetenv("TRAINYARD_TEST_SECRET");
}

TEST(Process, ReportsAProgramThatCannotBeStarted) {
  EXPECT_EQ(run({.arguments = {"no-such-program-here"}}).error().kind, Kind::not_found);
  EXPECT_EQ(run({.arguments = {"/etc/passwd"}}).error().kind, Kind::denied);
  EXPECT_EQ(run({}).error().kind, Kind::invalid);
  Command nowhere = shell("true");
  nowhere.working_directory = "/no/such/folder";
  EXPECT_NE(run(nowhere).error().message.find("/no/such/folder"), std::string::npos);
}

TEST(Process, RunOrFailReportsTheLastOutput) {
  EXPECT_EQ(*run_or_fail(shell("echo fine")), "fine\n");
  const auto failed = run_or_fail(shell("echo the disk is on fire >&2; exit 9"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "running /bin/sh: exit code 9: the disk is on fire");
}

TEST(Process, InheritsNoDescriptorsAndSignals) {
  const File mine(::open("/dev/null", O_RDONLY));  // inheritable on purpose
  ::signal(SIGUSR1, SIG_IGN);
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto open_files = run_or_fail(shell("ls /proc/self/fd | wc -l"));
  const auto status =
      run_or_fail({.arguments = {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"}});
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGUSR1, SIG_DFL);
  ASSERT_TRUE(open_files && status);
  EXPECT_EQ(trim(*open_files), "4");  // three streams and the one that ls reads
  std::istringstream lines(*status);
  std::string name;
  for (uint64_t signals; lines >> name >> std::hex >> signals;)
    // higher signals are reserved by the C library
    EXPECT_EQ(signals & 0x7fffffff, 0u) << name;
}

TEST(Process, LimitsTheStoredOutput) {
  Command flood = shell("head -c 20000000 /dev/zero; head -c 3000000 /dev/zero >&2");
  const auto outcome = run(flood);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code, 0);
  EXPECT_EQ(outcome->output.size(), size_t(16 << 20));
  EXPECT_TRUE(outcome->output_cut);
  EXPECT_EQ(outcome->errors.size(), size_t(1 << 20));
}

TEST(Process, KillsProgramsPastTheirTimeWithTheirChildren) {
  const TemporaryDirectory directory;
  Command command =
      shell("echo started; sleep 1000 & echo $! > " + directory.path() + "/pid; wait");
  command.at_most = 300ms;
  const auto outcome = run(command);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Kind::cancelled);
  if (const auto child = read_file(directory.path() + "/pid"); child && !trim(*child).empty()) {
    // It has ended, or is a zombie without a parent that waits for it.
    const std::string stat = "/proc/" + std::string(trim(*child)) + "/stat";
    EXPECT_TRUE(eventually([&] {
      const auto state = read_file(stat);
      return !state || state->find(") Z ") != std::string::npos;
    }));
  }
}

TEST(Process, DoesNotWaitForBackgroundProcesses) {
  const auto outcome = run(shell("sleep 1000 & echo $!"));
  ASSERT_TRUE(outcome);
  const auto left = parse_int(trim(outcome->output));
  ASSERT_TRUE(left);
  EXPECT_EQ(::kill(pid_t(*left), SIGKILL), 0);
}

TEST(Process, ADetachedProcessIsNotAChild) {
  const TemporaryDirectory directory;
  const std::string log = directory.path() + "/log";
  const auto started = start_detached(
      {"/bin/sh", "-c", "echo hello $NAME; ls /proc/self/fd | wc -l; exec sleep 1000"},
      {{"NAME", "world"}}, log);
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(::waitpid(*started, nullptr, WNOHANG), -1) << "it is not a child";
  EXPECT_EQ(::getsid(*started), *started) << "it leads its own session";
  EXPECT_TRUE(eventually([&] { return read_file(log).value() == "hello world\n4\n"; }))
      << *read_file(log);
  EXPECT_EQ(::kill(*started, SIGKILL), 0);
  EXPECT_EQ(start_detached({"no-such-program-here"}, {}, log).error().kind, Kind::not_found);
  EXPECT_EQ(start_detached({"true"}, {}, "/no/such/folder/log").error().kind, Kind::not_found);
}

TEST(Process, StartsAChildWithoutWaiting) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const File ours(ends[0]);
  File theirs(ends[1]);
  const auto child = spawn_child({"sh", "-c", "echo dropped; echo hello >&0; read line"}, ends[1]);
  ASSERT_TRUE(child) << child.error().message;
  theirs.close();
  char text[6] = {};
  ASSERT_EQ(::read(ours.descriptor(), text, 6), 6);
  EXPECT_EQ(std::string_view(text, 6), "hello\n");
  EXPECT_EQ(::getpgid(*child), *child) << "it is killed with its own children";
  EXPECT_FALSE(reap_child(*child, Duration(0)));
  ASSERT_EQ(::write(ours.descriptor(), "\n", 1), 1);
  EXPECT_TRUE(reap_child(*child, 10s));
  EXPECT_TRUE(reap_child(*child, 10s)) << "harmless again";
  EXPECT_EQ(spawn_child({"no-such-program-here"}, 0).error().kind, Kind::not_found);
}

TEST(Process, RunsManyAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; i++) {
        const std::string word = std::to_string(t * 100 + i);
        const auto said = run_or_fail({.arguments = {"echo", word}});
        if (said && *said == word + "\n") right++;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 100);
}

TEST(Process, FindsPrograms) {
  EXPECT_TRUE(on_path("sh"));
  EXPECT_TRUE(on_path("/bin/sh"));
  EXPECT_FALSE(on_path("no-such-program-here"));
  EXPECT_FALSE(on_path(""));
  EXPECT_FALSE(on_path("/tmp"));
  EXPECT_TRUE(exists(program_directory() + "/os_test"));
}

TEST(Process, WatchMayEndTheProgram) {
  int looks = 0;
  Command command{{"sleep", "1000"}};
  command.watch = [&] { return ++looks < 3; };
  const auto ended = run(command);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, Kind::cancelled);
  EXPECT_EQ(looks, 3);
}

}  // namespace
}  // namespace trainyard::os
