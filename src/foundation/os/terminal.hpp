// Controls the user's terminal, or the pipe or file in its place.
//
// While interrupts are watched, ctrl-C is an event; a second one before the first was read ends the
// program. While the terminal is raw, every end of the program (also by a signal that can be
// caught) restores it first.
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
  bool input = false, output = false, error = false;  // true for a terminal
  int columns = 0,
      rows = 0;  // of the output, or else of the error output; 0: neither is a terminal
};

struct TerminalEvent {
  bool interrupted = false;  // ctrl-C
  bool resized = false;
  bool readable = false;  // the `other` descriptor of wait()
  std::string input;      // bytes typed
  bool input_ended = false;
};

// Restores the terminal when destroyed.
class RawTerminal {
 public:
  virtual ~RawTerminal() = default;
};

class Terminal {
 public:
  virtual ~Terminal() = default;
  virtual TerminalShape shape() = 0;
  // Writes all of it to standard output. Errors: unavailable, when its reader has closed it.
  virtual Result<void> write(std::string_view text) = 0;
  virtual void write_error(std::string_view text) = 0;
  // Makes ctrl-C an event from now on.
  virtual void watch_interrupts() = 0;
  // Waits for an event or the end of the time; may return earlier without an event. `other`: a
  // descriptor to watch; -1 = none.
  virtual TerminalEvent wait(Duration at_most, bool with_input, int other) = 0;
  // Passes each key as it is typed, without echo. Errors: unavailable, if the input is not a
  // terminal.
  virtual Result<std::unique_ptr<RawTerminal>> raw() = 0;
  // Hides the cursor until show_cursor(), or the program's end.
  virtual void hide_cursor() = 0;
  virtual void show_cursor() = 0;
};

std::unique_ptr<Terminal> open_terminal();

}  // namespace trainyard::os
