#include "entry/processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/text.hpp"

namespace trainyard::entry {
namespace {

constexpr size_t kReadBytesMax = 64 << 10;
// The size of pipes, as of the agent's pipe: heavy output then causes fewer wake-ups. If the
// machine refuses it, the pipe keeps its size.
constexpr int kPipeBytes = 1 << 20;

struct Pipe {
  os::File read_end, write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return from_errno("making a pipe");
  Pipe pipe{os::File(ends[0]), os::File(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);
  return pipe;
}

// Owns the two records of posix_spawn.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// Restricts this thread, and so the processes that it starts, to these processors for the lifetime
// of the object. No effect if this process may use none of them.
class OnCpus {
 public:
  explicit OnCpus(const std::vector<int>& wanted) {
    if (wanted.empty() || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    for (const int cpu : wanted)
      if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &chosen);
    changed_ = CPU_COUNT(&chosen) > 0 && ::sched_setaffinity(0, sizeof chosen, &chosen) == 0;
  }
  ~OnCpus() {
    if (changed_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  OnCpus(const OnCpus&) = delete;

 private:
  cpu_set_t before_;
  bool changed_ = false;
};

bool is_program(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_program(std::string_view name, std::string_view path) {
  if (name.find('/') != std::string_view::npos)
    return is_program(std::string(name)) ? std::string(name) : "";
  for (const auto folder : split(path, ':')) {
    const std::string candidate =
        (folder.empty() ? "." : std::string(folder)) + "/" + std::string(name);
    if (is_program(candidate)) return candidate;
  }
  return "";
}

Result<Running> start(const Command& command) {
  const auto path = command.variables.find("PATH");
  const std::string program = find_program(
      command.arguments[0], path == command.variables.end() ? "/usr/bin:/bin" : path->second);
  if (program.empty())
    return not_found("program '" + command.arguments[0] + "' not found in this image");
  Running running;
  Pipe output, errors;
  SpawnPlan plan;
  ::posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0);
  if (command.catch_output) {
    output = TRY(make_pipe());
    ::posix_spawn_file_actions_adddup2(&plan.actions, output.write_end.descriptor(), 1);
  }
  if (command.catch_errors) {
    errors = TRY(make_pipe());
    ::posix_spawn_file_actions_adddup2(&plan.actions, errors.write_end.descriptor(), 2);
  }
  // The descriptors of this process are not inherited.
  ::posix_spawn_file_actions_addclosefrom_np(&plan.actions, 3);
  ::posix_spawn_file_actions_addchdir_np(&plan.actions, command.directory.c_str());
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setflags(
      &plan.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ::posix_spawnattr_setpgroup(&plan.attributes, 0);
  ::posix_spawnattr_setsigmask(&plan.attributes, &none);
  ::posix_spawnattr_setsigdefault(&plan.attributes, &all);

  std::vector<char*> arguments, variables;
  for (const auto& argument : command.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::vector<std::string> lines;
  for (const auto& [name, value] : command.variables) lines.push_back(name + "=" + value);
  for (const auto& line : lines) variables.push_back(const_cast<char*>(line.c_str()));
  variables.push_back(nullptr);
  const OnCpus there(command.cpus);
  const int failed = ::posix_spawn(&running.process, program.c_str(), &plan.actions,
                                   &plan.attributes, arguments.data(), variables.data());
  if (failed != 0) return from_errno("starting " + program, failed);
  running.output = std::move(output.read_end);
  running.errors = std::move(errors.read_end);
  return running;
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool read_available(const os::File& pipe, std::string& text) {
  char buffer[kReadBytesMax];
  for (;;) {
    const ssize_t got = ::read(pipe.descriptor(), buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
      return true;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN;
  }
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd waited{descriptor, POLLOUT, 0};
      ::poll(&waited, 1, -1);
    } else if (errno != EINTR) {
      return;  // the reader has closed its end
    }
  }
}

int count_cpus() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(CPU_COUNT(&cores), 1);
}

}  // namespace trainyard::entry
