#include "entry/init.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "entry/processes.hpp"

namespace trainyard::entry {
namespace {

constexpr int kNotFound = 127, kNotRunnable = 126;  // shells' codes

[[noreturn]] void become(const std::vector<std::string>& arguments, const sigset_t& mask) {
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> words;
  for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int code = errno == ENOENT ? kNotFound : kNotRunnable;
  write_all(STDERR_FILENO, arguments[0] + ": " + std::strerror(errno) + "\n");
  ::_exit(code);
}

}  // namespace

int run_init(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    write_all(STDERR_FILENO, "trainyard-entry: --init needs a program\n");
    return 2;
  }
  // A parent that ignores SIGCHLD, also by inheritance, gets no notice of a child's end.
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t all, before;
  ::sigfillset(&all);
  // Faults of our own are not forwarded.
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP})
    ::sigdelset(&all, number);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t program = ::fork();
  if (program < 0) {
    write_all(STDERR_FILENO, std::string("trainyard-entry: ") + std::strerror(errno) + "\n");
    return kNotRunnable;
  }
  if (program == 0) become(arguments, before);
  for (;;) {
    int number = 0;
    if (::sigwait(&all, &number) != 0) continue;
    if (number != SIGCHLD) {
      ::kill(program, number);
      continue;
    }
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == program) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

}  // namespace trainyard::entry
