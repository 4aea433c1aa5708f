// Terminal controls the user's terminal, or the pipes or files to which the standard streams are
// redirected.
//
// After watch_interrupts(), ctrl-C is an event; a second ctrl-C before the first was read ends the
// program. While the terminal is raw, it is restored before the program ends, even if a signal that
// can be caught ends it.
//
// Threads: confined to the main thread; one Terminal per program. Errors: unavailable (not a
// terminal), by errno.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::os {

struct TerminalShape {
  bool input = false, output = false, error = false;  // true: this stream is a terminal
  // the size of the terminal at the output, or at the error output; 0: neither is a terminal
  int columns = 0, rows = 0;
};

struct TerminalEvent {
  bool interrupted = false;  // ctrl-C
  bool resized = false;
  bool readable = false;  // the descriptor `other` of wait() is readable
  std::string input;      // typed bytes
  bool input_ended = false;
};

// RawTerminal keeps the terminal in raw mode; its destructor restores it.
class RawTerminal {
 public:
  virtual ~RawTerminal() = default;
};

class Terminal {
 public:
  virtual ~Terminal() = default;
  virtual TerminalShape shape() = 0;
  // Writes the whole text to standard output. Errors: unavailable, if its reader has closed it.
  virtual Result<void> write(std::string_view text) = 0;
  virtual void write_error(std::string_view text) = 0;
  // Makes ctrl-C an event from now on.
  virtual void watch_interrupts() = 0;
  // Waits for an event, at most `at_most`; may return earlier without an event. `other` is a
  // descriptor to watch; -1: none.
  virtual TerminalEvent wait(Duration at_most, bool with_input, int other) = 0;
  // Switches the terminal to raw mode: each key is read as it is typed, without echo. Errors:
  // unavailable, if the input is not a terminal.
  virtual Result<std::unique_ptr<RawTerminal>> raw() = 0;
  // Hides the cursor until show_cursor() or the end of the program.
  virtual void hide_cursor() = 0;
  virtual void show_cursor() = 0;
};

std::unique_ptr<Terminal> open_terminal();

}  // namespace trainyard::os
