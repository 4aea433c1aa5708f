// The terminal that a person sits at, or the pipe or file in its place.
//
// While interrupts are watched, ctrl-C is an event; a second one before the first was taken ends the program. While
// the terminal is raw, whatever ends the program (a signal that can be caught, included) puts it back first.
//
// Threads: confined to the main thread; one Terminal a program. Errors: unavailable (no terminal), by errno.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::os {

struct TerminalShape {
  bool input = false, output = false;  // whether standard input and output are one
  int columns = 0, rows = 0;           // of the output; 0 where it is none
};

struct TerminalEvent {
  bool interrupted = false;  // ctrl-C
  bool resized = false;
  bool readable = false;  // the other descriptor
  std::string input;      // what was typed
  bool input_ended = false;
};

// Ends when destroyed.
class RawTerminal {
 public:
  virtual ~RawTerminal() = default;
};

class Terminal {
 public:
  virtual ~Terminal() = default;
  virtual TerminalShape shape() = 0;
  // All of it, to standard output. Errors: unavailable, when nobody reads it any more.
  virtual Result<void> write(std::string_view text) = 0;
  virtual void write_error(std::string_view text) = 0;
  // From now on ctrl-C is an event.
  virtual void watch_interrupts() = 0;
  // Until something happens or the time is over. `other`: a descriptor to be told of; -1 = none.
  virtual TerminalEvent wait(Duration at_most, bool with_input, int other) = 0;
  // Each key as it is typed, nothing shown. Errors: unavailable, where the input is no terminal.
  virtual Result<std::unique_ptr<RawTerminal>> raw() = 0;
  // The cursor is not shown until shown again, or the program's end.
  virtual void hide_cursor() = 0;
  virtual void show_cursor() = 0;
};

std::unique_ptr<Terminal> open_terminal();

}  // namespace trainyard::os
