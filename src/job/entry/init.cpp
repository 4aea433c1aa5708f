#include "entry/init.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "contract/container_init.hpp"
#include "entry/init_child.hpp"
#include "entry/processes.hpp"

namespace trainyard::entry {
namespace {

constexpr int kNotFound = 127, kNotRunnable = 126;  // exit codes of shells

// Reports the error to the agent; prints it without an agent, as in tests.
int report_failure(const Error& error, const os::PacketSocket& agent) {
  if (!agent.send(contract::encode(contract::InitReport(contract::NotStarted{error.message}))))
    write_all(STDERR_FILENO, "trainyard-entry: " + error.message + "\n");
  return error.kind == Kind::not_found ? kNotFound : kNotRunnable;
}

// Returns the next signal, or a negative number when the child must be checked.
int wait_for_signal(const InitChild& child, const sigset_t& signals) {
  const timespec interval{0, std::chrono::nanoseconds(kStopCheckInterval).count()};
  const timespec nothing{0, 0};
  if (child.has_more()) return ::sigtimedwait(&signals, nullptr, &nothing);
  if (child.stopping()) return ::sigtimedwait(&signals, nullptr, &interval);
  return ::sigwaitinfo(&signals, nullptr);
}

// Forwards signals to the program and reaps until it ends; returns its exit code.
int follow(InitChild child, const sigset_t& signals) {
  for (;;) {
    const int number = wait_for_signal(child, signals);
    if (number > 0 && number != SIGCHLD) child.signal(number);
    if (number < 0 && child.stopping() && !child.has_more()) child.continue_stop();
    if (const auto code = child.reap()) return *code;
  }
}

}  // namespace

int run_init(const std::vector<std::string>& arguments, std::vector<std::string> environment,
             os::PacketSocket agent) {
  // PID 1 inherits orphans in any case; another process only as a subreaper.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A parent that ignores SIGCHLD, also by inheritance, gets no notice of a child's end.
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t signals;
  ::sigfillset(&signals);
  // Signals that a fault of this process raises are not forwarded.
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP})
    ::sigdelset(&signals, number);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  auto child = InitChild::start({arguments, std::move(environment)});
  if (!child) return report_failure(child.error(), agent);
  (void)agent.send(contract::encode(contract::InitReport(contract::Started{})));
  agent = os::PacketSocket(os::File());
  return follow(*std::move(child), signals);
}

}  // namespace trainyard::entry
