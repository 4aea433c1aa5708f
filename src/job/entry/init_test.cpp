#include "entry/init.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace trainyard::entry {
namespace {

// In a process of its own, as it blocks signals and reaps orphans.
pid_t start(const std::vector<std::string>& arguments) {
  const pid_t process = ::fork();
  if (process == 0) {
    // Unblocks signals that other tests have blocked.
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::_exit(run_init(arguments));
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
  EXPECT_EQ(code_of(start({})), 2);
}

TEST(Init, ForwardsSignals) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string descriptor_path = "/proc/self/fd/" + std::to_string(ends[1]);
  const pid_t process = start({"sh", "-c",
                               "trap 'exit 9' TERM; echo ready > " + descriptor_path +
                                   "; for i in $(seq 1000); do sleep 0.01; done"});
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1) << "it has its handler";
  ::kill(process, SIGTERM);
  EXPECT_EQ(code_of(process), 9);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace trainyard::entry
