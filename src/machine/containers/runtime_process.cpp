#include "containers/runtime_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "containers/runtime.hpp"

namespace trainyard::containers {
namespace {

// The arguments of the child, which are made before the fork.
struct Launch {
  ChildPlan plan;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int input, output, failure;
};

[[noreturn]] void be_the_child(const Launch& launch) {
  // Starts a new session, so that signals of a terminal do not reach it. Sets default signal
  // actions and unblocks all signals, because exec keeps both.
  ::setsid();
  for (int number = 1; number < NSIG; number++) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // A cgroup that limits cpus accepts no process with a real-time policy.
  const sched_param usual = {};
  (void)::sched_setscheduler(0, SCHED_OTHER, &usual);
  // Clears the umask, so that directories are made with exactly the given modes.
  ::umask(0022);
  for (size_t i = 0; i < launch.plan.steps().size(); i++) {
    if (const int error_number = launch.plan.carry_out(i)) {
      const ChildFailure failure{i, error_number};
      (void)!::write(launch.failure, &failure, sizeof failure);
      ::_exit(127);
    }
  }
  ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  if (::dup2(launch.input, 0) >= 0 && ::dup2(launch.output, 1) >= 0 &&
      ::dup2(launch.output, 2) >= 0)
    ::execve(launch.arguments[0], launch.arguments.data(), launch.environment.data());
  const ChildFailure failure{launch.plan.steps().size(), errno};
  (void)!::write(launch.failure, &failure, sizeof failure);
  ::_exit(127);
}

// Starts the child by vfork: it shares this process's memory until it executes the runtime, and
// this thread waits for that. Copying the page tables of an agent would take longer than everything
// that the child does, which is system calls only. A separate function, because vfork returns
// twice.
[[gnu::noinline]] pid_t start_child(const Launch& launch) {
  const pid_t child = ::vfork();
  if (child == 0) be_the_child(launch);
  return child;
}

// Returns a descriptor of an empty input. Not of /dev/null, because the runtime changes the owner
// of the files of its standard streams to the container's root.
Result<os::File> empty_input() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return from_errno("making a pipe");
  ::close(ends[1]);
  return os::File(ends[0]);
}

}  // namespace

Result<StartedRuntime> start_runtime(ChildPlan plan, const std::string& runtime,
                                     const std::string& directory, const std::string& id,
                                     int given_input, int output) {
  std::vector<std::string> words = {runtime,
                                    "--root",
                                    runtime_root(),
                                    "--log",
                                    "file:" + directory + "/" + kRuntimeLog,
                                    "--cgroup-manager",
                                    "disabled",
                                    "run",
                                    "--bundle",
                                    directory,
                                    "--pid-file",
                                    directory + "/" + kProcessPipe,
                                    "--no-new-keyring",
                                    id};
  Launch launch{std::move(plan), {}, {}, -1, -1, -1};
  for (auto& word : words) launch.arguments.push_back(word.data());
  launch.arguments.push_back(nullptr);
  // The runtime needs no variables of this process, and must not see secrets in them.
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  launch.environment = {path.data(), nullptr};

  const os::File empty = TRY(empty_input());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return from_errno("making a pipe");
  const os::File reading(ends[0]);
  os::File writing(ends[1]);
  launch.input = given_input >= 0 ? given_input : empty.descriptor();
  launch.output = output;
  launch.failure = writing.descriptor();

  StartedRuntime started;
  // No signal handler of this process may run in the process that shares its memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  started.process = start_child(launch);
  const int why = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started.process < 0) return from_errno("starting the container runtime", why);
  writing.close();
  started.ended = os::File(int(::syscall(SYS_pidfd_open, started.process, 0)));
  const int pidfd_error = errno;
  ChildFailure failure;
  ssize_t got;
  do got = ::read(reading.descriptor(), &failure, sizeof failure);
  while (got < 0 && errno == EINTR);
  if (got == sizeof failure || !started.ended) {
    if (!started.ended) ::kill(started.process, SIGKILL);
    while (::waitpid(started.process, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (!started.ended) return from_errno("watching the container runtime", pidfd_error);
    started.failure = failure;
    if (failure.step == launch.plan.steps().size())
      return from_errno("running " + runtime, failure.error_number);
  }
  return started;
}

int parent_of(int process) {
  const auto text = os::read_file("/proc/" + std::to_string(process) + "/stat", 4096);
  const size_t end = text ? text->rfind(')') : std::string::npos;
  if (end == std::string::npos) return 0;
  const auto members = split(std::string_view(*text).substr(end + 1), ' ');
  const auto number = members.size() > 2 ? parse_int(members[2]) : Result<int64_t>(not_found(""));
  return number ? int(*number) : 0;
}

}  // namespace trainyard::containers
