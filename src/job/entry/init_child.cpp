#include "entry/init_child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "contract/contract.hpp"
#include "entry/processes.hpp"
#include "os/files.hpp"

namespace trainyard::entry {
namespace {

constexpr std::string_view kPath = "PATH=";

// Searches a program on the PATH of its environment, as a shell does. Returns the given name if it
// is not found.
std::string path_of(const InitProgram& program) {
  const std::string& name = program.arguments[0];
  if (name.find('/') != name.npos) return name;
  std::string_view path = contract::kUsualPath;
  for (const std::string& variable : program.environment)
    if (variable.starts_with(kPath)) path = std::string_view(variable).substr(kPath.size());
  const std::string found = find_program(name, path);
  return found.empty() ? name : found;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Replaces the forked process by the program. Must not allocate memory.
[[noreturn]] void become(const char* path, const InitProgram& program, char** arguments,
                         char** environment, int failure) {
  ::setsid();
  for (int number = 1; number < NSIG; number++) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::umask(0022);
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = program.output;
  if (input >= 0 && ::dup2(input, 0) >= 0 &&
      (output < 0 || (::dup2(output, 1) >= 0 && ::dup2(output, 2) >= 0)) &&
      ::chdir(program.directory.c_str()) == 0)
    ::execve(path, arguments, environment);
  const int error_number = errno;
  (void)!::write(failure, &error_number, sizeof error_number);
  ::_exit(1);
}

// True for signals that request the end of a program and end one without a handler.
bool is_stop(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

}  // namespace

Result<InitChild> InitChild::start(InitProgram program) {
  if (program.arguments.empty()) return invalid("the order has no program");
  const std::string path = path_of(program);
  const auto arguments = pointers(program.arguments), environment = pointers(program.environment);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return from_errno("making a pipe");
  const os::File reading(ends[0]);
  os::File writing(ends[1]);
  const pid_t child = ::fork();
  if (child == 0)
    become(path.c_str(), program, const_cast<char**>(arguments.data()),
           const_cast<char**>(environment.data()), ends[1]);
  if (child < 0) return from_errno("starting " + program.arguments[0]);
  writing.close();
  int error_number = 0;
  ssize_t got;
  do got = ::read(reading.descriptor(), &error_number, sizeof error_number);
  while (got < 0 && errno == EINTR);
  if (got != sizeof error_number) return InitChild(child);
  (void)::waitpid(child, nullptr, 0);
  if (error_number == ENOENT)
    return not_found("executable file `" + program.arguments[0] + "` not found in $PATH");
  return from_errno(program.arguments[0], error_number);
}

void InitChild::send_stop(pid_t process) {
  if (signalled_.insert(process).second) ::kill(process, stop_);
}

void InitChild::signal(int number) {
  if (!is_stop(number)) {
    if (!code_) ::kill(program_, number);
    return;
  }
  const auto now = ProcessTree::read().children_of(::getpid());
  earlier_children_ = {now.begin(), now.end()};
  stop_ = number;
  signalled_.clear();
  idle_checks_ = 0;
  continue_stop();
}

void InitChild::continue_stop() {
  if (code_) return;
  std::set<pid_t> handlers;
  ProcessTree::read().add_handlers(program_, stop_, handlers);
  for (const pid_t process : handlers) send_stop(process);
  // Checks processes by their number: one that got the signal may have reset its handler.
  if (std::ranges::any_of(signalled_, [](pid_t process) { return ::kill(process, 0) == 0; }))
    idle_checks_ = 0;
  else if (signalled_.empty() || ++idle_checks_ * kStopCheckInterval >= kWrappersEndMax)
    send_stop(program_);
}

std::optional<int> InitChild::reap() {
  bool left_children = false;
  has_more_ = false;
  for (int count = 0; !has_more_; ++count) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended <= 0) break;
    const bool of_us = inherited_.erase(ended) > 0 || ended == program_;
    left_children |= of_us && stop_ != 0 && WIFSIGNALED(status) && WTERMSIG(status) == stop_;
    earlier_children_.erase(ended);  // the number may be used again
    signalled_.erase(ended);
    if (ended == program_ && !code_) code_ = exit_code_of(status);
    has_more_ = count + 1 == kReapedAtOnce || (code_ && stop_ == 0);
  }
  if (left_children) signal_inherited();
  return inherited_.empty() ? code_ : std::nullopt;
}

void InitChild::signal_inherited() {
  for (const pid_t child : ProcessTree::read().children_of(::getpid()))
    if (child != program_ && !earlier_children_.contains(child) && inherited_.insert(child).second)
      send_stop(child);
}

}  // namespace trainyard::entry
