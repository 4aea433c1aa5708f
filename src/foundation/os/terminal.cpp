#include "os/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace trainyard::os {
namespace {

constexpr size_t kInputBytes = 16 << 10;
constexpr std::string_view kHideCursor = "\033[?25l";
constexpr std::string_view kShowCursor = "\033[?25h";

// State that signal handlers use.
std::atomic<int> interrupts{0};
std::atomic<bool> resized{false};
std::atomic<bool> is_raw{false};
std::atomic<bool> cursor_is_hidden{false};
termios usual;  // written before is_raw is set
int wake_pipe[2] = {-1, -1};

void restore_terminal() {
  if (is_raw.exchange(false)) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &usual);
  if (cursor_is_hidden.exchange(false))
    (void)!::write(STDOUT_FILENO, kShowCursor.data(), kShowCursor.size());
}

void wake() {
  const int saved = errno;
  (void)!::write(wake_pipe[1], "", 1);
  errno = saved;
}

void on_interrupt(int) {
  if (interrupts.fetch_add(1) > 0) {
    restore_terminal();
    ::_exit(128 + SIGINT);
  }
  wake();
}

void on_resize(int) {
  resized = true;
  wake();
}

// Restores the terminal, and then ends the program by the default action of the signal.
void on_deadly_signal(int number) {
  restore_terminal();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

void restore_on_signals() {
  static bool guarded = false;
  if (guarded) return;
  guarded = true;
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    handle(number, on_deadly_signal);
  struct sigaction present = {};
  ::sigaction(SIGINT, nullptr, &present);
  if (present.sa_handler == SIG_DFL) handle(SIGINT, on_deadly_signal);
}

class RawInput final : public RawTerminal {
 public:
  ~RawInput() override { restore_terminal(); }
};

class RealTerminal final : public Terminal {
 public:
  RealTerminal() {
    if (wake_pipe[0] < 0) (void)!::pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK);
  }
  ~RealTerminal() override { restore_terminal(); }

  TerminalShape shape() override {
    TerminalShape shape;
    shape.input = ::isatty(STDIN_FILENO) == 1;
    shape.output = ::isatty(STDOUT_FILENO) == 1;
    shape.error = ::isatty(STDERR_FILENO) == 1;
    winsize size = {};
    if ((shape.output || shape.error) &&
        ::ioctl(shape.output ? STDOUT_FILENO : STDERR_FILENO, TIOCGWINSZ, &size) == 0)
      shape.columns = size.ws_col, shape.rows = size.ws_row;
    return shape;
  }

  Result<void> write(std::string_view text) override {
    while (!text.empty()) {
      const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno == EAGAIN) {
        pollfd writable{STDOUT_FILENO, POLLOUT, 0};
        (void)::poll(&writable, 1, -1);
        continue;
      }
      if (written < 0) return unavailable("writing to standard output: its reader has closed it");
      text.remove_prefix(size_t(written));
    }
    return {};
  }

  void write_error(std::string_view text) override {
    while (!text.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      text.remove_prefix(size_t(written));
    }
  }

  void watch_interrupts() override {
    handle(SIGINT, on_interrupt);
    handle(SIGWINCH, on_resize);
  }

  TerminalEvent wait(Duration at_most, bool with_input, int other) override {
    TerminalEvent event;
    pollfd ready[3] = {
        {wake_pipe[0], POLLIN, 0}, {with_input ? STDIN_FILENO : -1, POLLIN, 0}, {other, POLLIN, 0}};
    const int milliseconds = int(std::clamp<int64_t>(at_most / 1ms, 0, 1 << 30));
    const int count = ::poll(ready, 3, milliseconds);
    // If the signal ended poll() itself (EINTR), its byte must be read here, or it would end the
    // next wait too.
    char ignored[64];
    while (::read(wake_pipe[0], ignored, sizeof ignored) > 0) {
    }
    if (count > 0 && ready[1].revents != 0) {
      event.input.resize(kInputBytes);
      const ssize_t got = ::read(STDIN_FILENO, event.input.data(), event.input.size());
      event.input.resize(size_t(std::max<ssize_t>(0, got)));
      event.input_ended = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
    }
    event.readable = count > 0 && ready[2].revents != 0;
    event.interrupted = interrupts.exchange(0) > 0;
    event.resized = resized.exchange(false);
    return event;
  }

  Result<std::unique_ptr<RawTerminal>> raw() override {
    if (::tcgetattr(STDIN_FILENO, &usual) != 0)
      return unavailable("switching the terminal to raw mode: standard input is not a terminal");
    termios changed = usual;
    ::cfmakeraw(&changed);
    restore_on_signals();
    is_raw = true;
    if (::tcsetattr(STDIN_FILENO, TCSADRAIN, &changed) != 0) {
      is_raw = false;
      return from_errno("switching the terminal to raw mode");
    }
    return std::unique_ptr<RawTerminal>(std::make_unique<RawInput>());
  }

  void hide_cursor() override {
    restore_on_signals();
    cursor_is_hidden = true;
    (void)write(kHideCursor);
  }
  void show_cursor() override {
    if (cursor_is_hidden.exchange(false)) (void)write(kShowCursor);
  }
};

}  // namespace

std::unique_ptr<Terminal> open_terminal() { return std::make_unique<RealTerminal>(); }

}  // namespace trainyard::os
