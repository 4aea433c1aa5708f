// Writes the log of the program itself, one line per event, for operators. (The module observe
// stores the logs of jobs.)
//
//   log(Level::info, "control", "placed gang", {{"job", name}, {"hosts", "2"}});
//   2026-11-20T09:45:00.123Z info control: placed gang job=mnist-1 hosts=2
//
// Lines never contain secrets or request bodies. Until main sets a sink, lines go to standard
// error.
// Threads: callable from anywhere; a line is written as a whole.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.hpp"

namespace trainyard {

enum class Level { debug, info, warning, error };

using Field = std::pair<std::string_view, std::string>;

// `line` has no newline at its end.
using LogSink = std::function<void(Level level, std::string_view line)>;

// Sets where lines are written; lines of a level below `least` are dropped. Requires: called by
// main before any thread starts.
void set_log(LogSink sink, Clock& clock, Level least);

void log(Level level, std::string_view module, std::string_view what,
         std::initializer_list<Field> fields = {});

}  // namespace trainyard
