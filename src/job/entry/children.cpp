#include "entry/children.hpp"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace trainyard::entry {
namespace {

// The longest line that is forwarded whole; longer ones are forwarded in pieces.
constexpr size_t kLineBytesMax = 64 << 10;
constexpr int kOutput = 1, kErrors = 2;
// The limit of bytes to read after the end of a process: more than the capacity of its pipe. An
// orphan may write to that pipe forever.
constexpr size_t kLastBytesMax = 4 << 20;

// Removes the beginning of a text that is too long.
void keep_end(std::string& end, std::string_view text) {
  if (text.size() >= kLastOutputBytesMax) {
    end = text.substr(text.size() - kLastOutputBytesMax);
    return;
  }
  end += text;
  if (end.size() > kLastOutputBytesMax) end.erase(0, end.size() - kLastOutputBytesMax);
}

}  // namespace

Signals::Signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  file_ = os::File(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool Signals::take() {
  bool stop = false;
  signalfd_siginfo info;
  while (::read(file_.descriptor(), &info, sizeof info) == sizeof info)
    stop |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
  return stop;
}

Result<void> Children::start(Command command, Kind kind) {
  command.catch_errors = command.catch_output = true;
  Child child;
  for (const auto& argument : command.arguments)
    child.command += (child.command.empty() ? "" : " ") + argument;
  child.running = TRY(entry::start(command));
  child.kind = std::move(kind);
  const pid_t process = child.running.process;
  children_.insert_or_assign(process, std::move(child));
  return {};
}

void Children::add_waits(std::vector<pollfd>& waits) const {
  for (const auto& [process, child] : children_) {
    if (child.running.errors) waits.push_back({child.running.errors.descriptor(), POLLIN, 0});
    if (child.running.output) waits.push_back({child.running.output.descriptor(), POLLIN, 0});
  }
}

void Children::pump() {
  for (auto& [process, child] : children_) forward(child, false);
}

// Forwards standard output before standard error, so that text printed before a traceback stays
// before it.
void Children::forward(Child& child, bool to_the_end) {
  forward_output(child, to_the_end);
  size_t bytes = 0;
  for (bool more = true; more && child.running.errors;) {
    std::string text;
    const bool open = read_available(child.running.errors, text);
    bytes += text.size();
    if (child.kind.on_output) child.kind.on_output(text.size());
    write_all(kErrors, text);
    keep_end(child.printed.errors, text);
    keep_end(child.printed.all, text);
    if (!open) child.running.errors.close();
    more = to_the_end && !text.empty() && bytes < kLastBytesMax;
  }
}

void Children::forward_output(Child& child, bool to_the_end) {
  size_t bytes = 0;
  for (bool more = true; more && child.running.output;) {
    std::string text;
    const bool open = read_available(child.running.output, text);
    bytes += text.size();
    if (child.kind.on_output) child.kind.on_output(text.size());
    more = to_the_end && !text.empty() && bytes < kLastBytesMax;
    keep_end(child.printed.all, text);
    if (child.kind.change_line || child.kind.whole_lines)
      text = whole_lines(child, std::move(text), !open);
    write_all(kOutput, text);
    if (!open) child.running.output.close();
  }
}

// Returns the lines that the text completes, changed if the kind says so; at the end of the output
// also the incomplete last line.
std::string Children::whole_lines(Child& child, std::string text, bool at_the_end) {
  child.partial_line += text;
  std::string lines;
  size_t begin = 0;
  if (!child.kind.change_line) {
    begin = child.partial_line.rfind('\n') + 1;  // none: 0
    lines = child.partial_line.substr(0, begin);
  }
  for (size_t end; (end = child.partial_line.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    lines +=
        child.kind.change_line(std::string_view(child.partial_line).substr(begin, end - begin));
  child.partial_line.erase(0, begin);
  if (child.partial_line.size() > kLineBytesMax || at_the_end) {
    lines += child.partial_line;
    child.partial_line.clear();
  }
  return lines;
}

std::vector<Children::Exit> Children::reap() {
  std::vector<Exit> exits;
  int status = 0;
  for (pid_t process; (process = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found = children_.find(process);
    if (found == children_.end()) continue;
    Child& child = found->second;
    forward(child, true);
    write_all(kOutput, child.partial_line);
    exits.push_back({std::move(child.kind), exit_code_of(status), std::move(child.printed),
                     std::move(child.command)});
    children_.erase(found);
  }
  return exits;
}

void Children::request_end() {
  for (auto& [process, child] : children_)
    if (!std::exchange(child.requested_end, true))
      ::kill(child.kind.signal_group ? -process : process, SIGTERM);
}

void Children::kill() {
  for (const auto& [process, child] : children_) ::kill(-process, SIGKILL);
}

}  // namespace trainyard::entry
