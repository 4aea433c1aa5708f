#include "os/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/text.hpp"
#include "os/files.hpp"

extern char** environ;

namespace trainyard::os {
namespace {

// limit of a program's standard error; the rest is read and dropped, like that of its output, so
// the program never blocks on a full pipe
constexpr size_t kErrorsBytesMax = 1 << 20;
// the largest pipe that Linux makes for ordinary users
constexpr size_t kPipeBytesMax = 1 << 20;
// limit of a program's output in an error message: a few lines
constexpr size_t kLastOutputBytesMax = 2000;

// An array of pointers for exec, to strings that outlive it.
struct Block {
  explicit Block(std::vector<std::string> texts) : strings(std::move(texts)) {
    for (std::string& string : strings) pointers.push_back(string.data());
    pointers.push_back(nullptr);
  }
  char** get() { return pointers.data(); }
  std::vector<std::string> strings;
  std::vector<char*> pointers;
};

std::vector<std::string> environment_with(
    const std::map<std::string, std::string>& added,
    const std::optional<std::vector<std::string>>& inherited = {}) {
  std::vector<std::string> lines;
  for (char** line = environ; line && *line; line++) {
    const std::string_view text = *line;
    const std::string name(text.substr(0, text.find('=')));
    const bool passed = !inherited || std::ranges::find(*inherited, name) != inherited->end();
    if (passed && !added.contains(name)) lines.emplace_back(text);
  }
  for (const auto& [name, value] : added) lines.push_back(name + "=" + value);
  return lines;
}

// SpawnPlan describes the state in which a child starts: no descriptors except the three streams,
// no blocked signals, default signal actions.
class SpawnPlan {
 public:
  SpawnPlan(int input, int output, int errors, short flags) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_adddup2(&actions_, input, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, 1);
    ::posix_spawn_file_actions_adddup2(&actions_, errors, 2);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_,
                               short(flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  SpawnPlan(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  void start_in(const std::string& directory) {
    ::posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str());
  }
  // Returns an error number; 0: the program runs. May be called in the child of a vfork.
  int spawn(pid_t* process, char** arguments, char** environment) {
    return ::posix_spawnp(process, arguments[0], &actions_, &attributes_, arguments, environment);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

struct Pipe {
  File reading, writing;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return from_errno("making a pipe");
  return Pipe{File(ends[0]), File(ends[1])};
}

// Moves a descriptor above 2. Descriptors 0..2 may be closed in this process; a new descriptor with
// such a number would be overwritten by the streams of the child.
Result<File> above_standard_streams(File file) {
  if (file.descriptor() > 2) return file;
  const int moved = ::fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 3);
  if (moved < 0) return from_errno("copying a descriptor");
  return File(moved);
}

Result<File> standard_input(const std::string& text) {
  if (text.empty()) {
    File null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) return from_errno("opening /dev/null");
    return null;
  }
  // Uses a file in memory instead of a pipe: it needs no writer, and a child that does not read it
  // blocks no thread.
  File memory(::memfd_create("input", MFD_CLOEXEC));
  if (!memory) return from_errno("making a file in memory");
  for (size_t done = 0; done < text.size();) {
    const ssize_t written =
        ::pwrite(memory.descriptor(), text.data() + done, text.size() - done, off_t(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return from_errno("writing the input");
    done += size_t(written);
  }
  return memory;
}

// Reads the available bytes without waiting, at most the size of a pipe, so an endless writer does
// not block this thread. Returns false at the end of the stream.
bool drain(const File& pipe, std::string& kept, size_t bytes_max, bool& cut) {
  char buffer[64 << 10];
  for (size_t round = 0; round < kPipeBytesMax / sizeof buffer; round++) {
    const ssize_t got = ::read(pipe.descriptor(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    cut |= size_t(got) > bytes_max - kept.size();
    kept.append(buffer, std::min(size_t(got), bytes_max - kept.size()));
    if (size_t(got) < sizeof buffer) return true;
  }
  return true;
}

std::string last_output(const Outcome& outcome) {
  std::string_view message = trim(outcome.errors);
  if (message.empty()) message = trim(outcome.output);
  if (message.size() > kLastOutputBytesMax)
    message.remove_prefix(message.size() - kLastOutputBytesMax);
  return to_utf8(message);
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

int milliseconds_until(std::chrono::steady_clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now())
          .count();
  return int(std::clamp<int64_t>(left, 0, 1'000'000'000));
}

// The result that the intermediate process of start_detached reports.
struct Started {
  int error_number;
  pid_t process;
};

// Starts the program from an intermediate process, which ends, so that init becomes the parent of
// the program. The intermediate process shares this process's memory until it ends (vfork), so it
// calls only what posix_spawn may call. A separate function, because vfork returns twice.
[[gnu::noinline]] pid_t start_through_another(SpawnPlan& plan, char** arguments, char** environment,
                                              int answer, bool own_pid_namespace) {
  const pid_t middle = ::vfork();
  if (middle == 0) {
    Started started = {0, -1};
    // Affects only the child of the intermediate process.
    if (own_pid_namespace && ::unshare(CLONE_NEWPID) != 0) started.error_number = errno;
    if (started.error_number == 0)
      started.error_number = plan.spawn(&started.process, arguments, environment);
    const ssize_t written = ::write(answer, &started, sizeof started);
    ::_exit(written == sizeof started ? 0 : 1);
  }
  return middle;
}

// Calls the function on a new thread whose children are in a new PID namespace. The thread ends, so
// children of other threads are not affected.
int in_new_pid_namespace(const std::function<int()>& spawn) {
  int why = 0;
  std::thread([&] { why = ::unshare(CLONE_NEWPID) != 0 ? errno : spawn(); }).join();
  return why;
}

// A running program, and this process's ends of its streams.
struct Child {
  pid_t process = -1;
  File output, errors;
  File ended;  // readable once it has ended
};

Result<Child> start_child(const Command& command, const std::string& doing) {
  File input = TRY(standard_input(command.input).in(doing));
  Pipe output = TRY(make_pipe().in(doing));
  Pipe errors = TRY(make_pipe().in(doing));
  input = TRY(above_standard_streams(std::move(input)));
  output.writing = TRY(above_standard_streams(std::move(output.writing)));
  errors.writing = TRY(above_standard_streams(std::move(errors.writing)));

  // A new process group, so that its children can be killed with it.
  SpawnPlan plan(input.descriptor(), output.writing.descriptor(), errors.writing.descriptor(),
                 POSIX_SPAWN_SETPGROUP);
  if (!command.working_directory.empty()) plan.start_in(command.working_directory);
  Block arguments(command.arguments),
      environment(environment_with(command.environment, command.inherited));
  Child child;
  const auto spawn = [&] { return plan.spawn(&child.process, arguments.get(), environment.get()); };
  if (const int why = command.own_pid_namespace ? in_new_pid_namespace(spawn) : spawn(); why != 0) {
    if (!command.working_directory.empty() && !exists(command.working_directory))
      return from_errno(doing + " in " + command.working_directory, why);
    return from_errno(doing, why);
  }
  child.output = std::move(output.reading);
  child.errors = std::move(errors.reading);
  child.ended = File(int(::syscall(SYS_pidfd_open, child.process, 0)));
  if (!child.ended) {
    const Error why = from_errno(doing);
    ::kill(-child.process, SIGKILL);
    wait_for(child.process);
    return why;
  }
  for (const File* pipe : {&child.output, &child.errors})
    ::fcntl(pipe->descriptor(), F_SETFL, O_RDONLY | O_NONBLOCK);
  return child;
}

enum class Ending { by_itself, late, unwanted };  // late, unwanted: it was killed

// Reads the output of the child until the child has ended; processes that it left running may keep
// the pipes open forever. Kills its process group at the deadline or when command.watch returns
// false.
Ending await_child(const Command& command, std::chrono::steady_clock::time_point deadline,
                   const Child& child, Outcome& outcome) {
  pollfd watched[3] = {{child.output.descriptor(), POLLIN, 0},
                       {child.errors.descriptor(), POLLIN, 0},
                       {child.ended.descriptor(), POLLIN, 0}};
  bool killed = false, unwanted = false, errors_cut = false;
  auto next_look = std::chrono::steady_clock::now() + kWatchInterval;
  while (!(watched[2].revents & POLLIN)) {
    const int ready = ::poll(
        watched, 3,
        milliseconds_until(command.watch && !killed ? std::min(deadline, next_look) : deadline));
    if (ready < 0 && errno != EINTR) break;
    if (command.watch && !killed && std::chrono::steady_clock::now() >= next_look) {
      unwanted = !command.watch();
      next_look = std::chrono::steady_clock::now() + kWatchInterval;
    }
    const bool late = ready == 0 && std::chrono::steady_clock::now() >= deadline;
    if ((late || unwanted) && !killed) {
      ::kill(-child.process, SIGKILL);
      killed = true;
      ::poll(&watched[2], 1, -1);
    }
    if (watched[0].revents &&
        !drain(child.output, outcome.output, kOutputBytesMax, outcome.output_cut))
      watched[0].fd = -1;
    if (watched[1].revents && !drain(child.errors, outcome.errors, kErrorsBytesMax, errors_cut))
      watched[1].fd = -1;
  }
  drain(child.output, outcome.output, kOutputBytesMax, outcome.output_cut);
  drain(child.errors, outcome.errors, kErrorsBytesMax, errors_cut);
  return unwanted ? Ending::unwanted : killed ? Ending::late : Ending::by_itself;
}

}  // namespace

Result<Outcome> run(const Command& command) {
  if (command.arguments.empty()) return invalid("running a program: no arguments");
  const std::string doing = "running " + command.arguments[0];
  const auto deadline = std::chrono::steady_clock::now() + command.at_most;
  const Child child = TRY(start_child(command, doing));
  Outcome outcome;
  const Ending ending = await_child(command, deadline, child, outcome);
  outcome.code = exit_code(wait_for(child.process));
  if (ending == Ending::by_itself) return outcome;
  if (ending == Ending::unwanted) return cancelled(doing + ": stopped by the caller");
  const std::string message = last_output(outcome);
  return cancelled(doing + ": killed after " + std::to_string(command.at_most.count()) + " ms" +
                   (message.empty() ? "" : "; its last output: " + message));
}

Result<std::string> run_or_fail(const Command& command) {
  Outcome outcome = TRY(run(command));
  if (outcome.code == 0) return std::move(outcome.output);
  const std::string message = last_output(outcome);
  return internal("running " + command.arguments[0] + ": exit code " +
                  std::to_string(outcome.code) + (message.empty() ? "" : ": " + message));
}

Result<pid_t> start_detached(const std::vector<std::string>& arguments,
                             const std::map<std::string, std::string>& environment,
                             const std::string& log_file, bool own_pid_namespace, int input) {
  if (arguments.empty()) return invalid("starting a program: no arguments");
  const std::string doing = "starting " + arguments[0];
  File null = TRY(standard_input("").in(doing));
  File log(::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600));
  if (!log) return from_errno(doing + ": opening " + log_file);
  Pipe answer = TRY(make_pipe().in(doing));
  null = TRY(above_standard_streams(std::move(null)));
  log = TRY(above_standard_streams(std::move(log)));
  answer.writing = TRY(above_standard_streams(std::move(answer.writing)));

  SpawnPlan plan(input >= 0 ? input : null.descriptor(), log.descriptor(), log.descriptor(),
                 POSIX_SPAWN_SETSID);
  Block block(arguments), lines(environment_with(environment));
  // No signal handler of this process may run in the process that shares its memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t middle = start_through_another(plan, block.get(), lines.get(),
                                             answer.writing.descriptor(), own_pid_namespace);
  const int why = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (middle < 0) return from_errno(doing, why);
  answer.writing.close();
  wait_for(middle);
  Started started;
  if (::read(answer.reading.descriptor(), &started, sizeof started) != sizeof started)
    return internal(doing + ": the intermediate process ended without a report");
  if (started.error_number != 0) return from_errno(doing, started.error_number);
  return started.process;
}

Result<pid_t> spawn_child(const std::vector<std::string>& arguments, int input) {
  if (arguments.empty()) return invalid("starting a program: no arguments");
  const std::string doing = "starting " + arguments[0];
  File null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!null) return from_errno(doing + ": opening /dev/null");
  null = TRY(above_standard_streams(std::move(null)));
  SpawnPlan plan(input, null.descriptor(), null.descriptor(), POSIX_SPAWN_SETPGROUP);
  Block block(arguments), lines(environment_with({}));
  pid_t child = -1;
  if (const int why = plan.spawn(&child, block.get(), lines.get()); why != 0)
    return from_errno(doing, why);
  return child;
}

bool reap_child(pid_t child, Duration at_most) {
  const File process(int(::syscall(SYS_pidfd_open, child, 0)));
  pollfd ended{process.descriptor(), POLLIN, 0};
  if (process) ::poll(&ended, 1, int(std::clamp<int64_t>(at_most.count(), 0, INT_MAX)));
  return ::waitpid(child, nullptr, WNOHANG) != 0;
}

std::string program_directory() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string_view whole(path, length > 0 ? size_t(length) : 0);
  const size_t slash = whole.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : whole.substr(0, slash));
}

bool on_path(const std::string& program) {
  if (program.empty()) return false;
  const auto runs = [](const std::string& path) {
    struct stat status;
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) return runs(program);
  const char* path = ::getenv("PATH");
  for (const std::string_view folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':'))
    if (runs((folder.empty() ? "." : std::string(folder)) + "/" + program)) return true;
  return false;
}

}  // namespace trainyard::os
