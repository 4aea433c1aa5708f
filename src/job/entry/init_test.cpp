#include "entry/init.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "contract/container_init.hpp"
#include "entry/init_child.hpp"

extern char** environ;

namespace trainyard::entry {
namespace {

// Runs the init in a separate process, since it blocks signals and reaps orphans.
pid_t start(const std::vector<std::string>& arguments, os::File agent = os::File()) {
  const pid_t process = ::fork();
  if (process == 0) {
    // Unblocks signals that other tests have blocked.
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::vector<std::string> environment;
    for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
    ::_exit(run_init(arguments, std::move(environment), os::PacketSocket(std::move(agent))));
  }
  return process;
}
int code_of(pid_t process) {
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Init, EndsWithItsProgramsCode) {
  EXPECT_EQ(code_of(start({"true"})), 0);
  EXPECT_EQ(code_of(start({"sh", "-c", "exit 7"})), 7);
  EXPECT_EQ(code_of(start({"sh", "-c", "kill -9 $$"})), 137);
  EXPECT_EQ(code_of(start({"sh", "-c", "(sleep 0; exit 3) & wait; exit 0"})), 0);
  EXPECT_EQ(code_of(start({"/no/such/program"})), 127);
  EXPECT_EQ(code_of(start({"/"})), 126);
  EXPECT_EQ(code_of(start({})), 126);
}

// Forks processes that end at once, and waits until they have. They stay to be reaped.
void leave_ended(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t process = ::fork();
    if (process == 0) ::_exit(0);
    siginfo_t info;
    ::waitid(P_PID, id_t(process), &info, WEXITED | WNOWAIT);
  }
}

// As under a fork bomb, processes end while others are reaped, in the order of their start. Runs in
// a separate process, which ends with the number of the step that failed, or 0.
TEST(Init, EndingProcessesDoNotDelaySignals) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::signal(SIGCHLD, SIG_DFL);
    leave_ended(kReapedAtOnce + 1);
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(1);
    auto child = InitChild::start(
        {.arguments = {"/bin/sh", "-c", "echo $$; exit 7"}, .environment = {}, .output = ends[1]});
    if (!child) ::_exit(2);
    if (child->reap() || !child->has_more()) ::_exit(3);  // signals are read in between
    leave_ended(2);
    char number[16] = {};
    siginfo_t info;
    if (::read(ends[0], number, sizeof number - 1) <= 0 ||
        ::waitid(P_PID, id_t(std::atoi(number)), &info, WEXITED | WNOWAIT) != 0)
      ::_exit(4);
    if (child->reap() != 7 || !child->has_more()) ::_exit(5);
    ::_exit(::waitpid(-1, nullptr, WNOHANG) > 0 ? 0 : 6);
  }
  EXPECT_EQ(code_of(process), 0);
}

// Waits a minute and ends, so that a script ends by itself even if its test fails.
constexpr const char* kWait = "for i in $(seq 6000); do sleep 0.01; done";

// Scripts write to it as $TOLD.
class InitSignals : public testing::Test {
 protected:
  InitSignals() {
    EXPECT_EQ(::pipe(ends_), 0);
    ::setenv("TOLD",
             ("/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ends_[1])).c_str(),
             1);
  }
  ~InitSignals() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
    ::unsetenv("TOLD");
  }
  std::string written(size_t bytes) {
    std::string text(bytes, '\0');
    size_t length = 0;
    while (length < bytes) {
      const ssize_t got = ::read(ends_[0], text.data() + length, bytes - length);
      if (got <= 0) break;
      length += size_t(got);
    }
    return text.substr(0, length);
  }

 private:
  int ends_[2];
};

TEST_F(InitSignals, AreForwarded) {
  const pid_t process =
      start({"sh", "-c", std::string("trap 'exit 9' TERM; printf r > $TOLD; ") + kWait});
  ASSERT_EQ(written(1), "r") << "it has its handler";
  ::kill(process, SIGTERM);
  EXPECT_EQ(code_of(process), 9);
}

TEST_F(InitSignals, EndAProgramWithoutAHandler) {
  const pid_t process = start({"sh", "-c", std::string("printf r > $TOLD; ") + kWait});
  ASSERT_EQ(written(1), "r");
  ::kill(process, SIGTERM);
  EXPECT_EQ(code_of(process), 128 + SIGTERM);
}

// A script that writes to a file when it gets a stop signal.
std::string saving_script() {
  return std::string("trap 'sleep 0.3; printf s > $TOLD; exit 4' TERM; printf r > $TOLD; ") + kWait;
}

// A shell starts a driver, which starts the script.
TEST_F(InitSignals, ReachTheScriptBelowShells) {
  ::setenv("SCRIPT", saving_script().c_str(), 1);
  const pid_t process = start({"sh", "-c", "sh -c 'sh -c \"$SCRIPT\"; exit $?'; exit $?"});
  ASSERT_EQ(written(1), "r");
  ::kill(process, SIGTERM);
  EXPECT_EQ(written(1), "s");
  EXPECT_EQ(code_of(process), 4) << "the shells end after it, with its code";
  ::unsetenv("SCRIPT");
}

TEST_F(InitSignals, EndAShellThatContinuesAfterItsScript) {
  ::setenv("SCRIPT", saving_script().c_str(), 1);
  const pid_t process =
      start({"sh", "-c", std::string("sh -c \"$SCRIPT\"; printf n > $TOLD; ") + kWait});
  ASSERT_EQ(written(1), "r");
  ::kill(process, SIGTERM);
  EXPECT_EQ(written(2), "sn");
  EXPECT_EQ(code_of(process), 128 + SIGTERM);
  ::unsetenv("SCRIPT");
}

// The child is a copy of the program, so only the program gets the signal; it leaves the copy
// behind.
TEST_F(InitSignals, ReachProcessesThatTheProgramLeaves) {
  const pid_t process = start({"sh", "-c", "(" + saving_script() + "); printf n > $TOLD"});
  ASSERT_EQ(written(1), "r");
  ::kill(process, SIGTERM);
  EXPECT_EQ(written(1), "s") << "the end waits for it";
  EXPECT_EQ(code_of(process), 128 + SIGTERM);
}

TEST_F(InitSignals, DoNotReachTheChildrenOfAProgramThatHandlesThem) {
  // The child outlives its parent: if it got the signal, it would write an "x" before the end.
  ::setenv("CHILD",
           (std::string("trap 'printf x > $TOLD' TERM; printf c > $TOLD; ") + kWait).c_str(), 1);
  const pid_t process = start(
      {"sh", "-c",
       std::string(
           "trap 'sleep 0.3; kill -KILL $child; printf e > $TOLD; exit 3' TERM; sh -c \"$CHILD\" & "
           "child=$!; ") +
           kWait});
  ASSERT_EQ(written(1), "c");
  ::kill(process, SIGTERM);
  EXPECT_EQ(code_of(process), 3);
  EXPECT_EQ(written(1), "e");
  ::unsetenv("CHILD");
}

contract::InitReport reported(const std::vector<std::string>& arguments) {
  auto pair = os::PacketSocket::pair();
  EXPECT_TRUE(pair);
  const pid_t process = start(arguments, os::File(std::move(pair->second)));
  pair->second.close();
  auto packet = pair->first.receive(60s);
  EXPECT_TRUE(packet && *packet);
  (void)code_of(process);
  EXPECT_EQ(pair->first.receive(60s).error().kind, Kind::cancelled) << "nothing but one report";
  return packet && *packet ? contract::decode_init_report((*packet)->bytes).value()
                           : contract::InitReport(contract::Cleared{});
}

TEST(Init, ReportsItsStart) {
  EXPECT_TRUE(std::holds_alternative<contract::Started>(reported({"true"})));
  const auto failed = reported({"no-such-program"});
  ASSERT_TRUE(std::holds_alternative<contract::NotStarted>(failed));
  EXPECT_EQ(std::get<contract::NotStarted>(failed).reason,
            "executable file `no-such-program` not found in $PATH");
}

}  // namespace
}  // namespace trainyard::entry
