#include "base/log.hpp"

#include <cstdio>

#include "base/enum_table.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"

namespace trainyard {
namespace {

constexpr size_t kFieldBytesMax = 2000;  // keeps lines readable, even if a peer sent a long text

struct LogState {
  LogSink sink;
  Clock* clock = nullptr;
  Level least = Level::warning;
};

LogState& state() {
  static LogState the_state;
  return the_state;
}

constexpr EnumTable<Level> kLevels{"level",
                                   {{Level::debug, "debug"},
                                    {Level::info, "info"},
                                    {Level::warning, "warning"},
                                    {Level::error, "error"}}};

// Quotes values with blanks or control characters, so that an event is always one line.
void append_value(std::string& line, std::string_view value) {
  const std::string shown = to_utf8(shorten(value, kFieldBytesMax));
  const bool plain = !shown.empty() && shown.find_first_of(" \"\\\n\r\t=") == std::string::npos;
  if (plain) {
    line += shown;
    return;
  }
  line += '"';
  for (const char c : shown) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n')
      line += "\\n";
    else if (uint8_t(c) < 0x20)
      line += ' ';
    else
      line += c;
  }
  line += '"';
}

}  // namespace

void set_log(LogSink sink, Clock& clock, Level least) {
  state() = {std::move(sink), &clock, least};
}

void log(Level level, std::string_view module, std::string_view what,
         std::initializer_list<Field> fields) {
  if (level < state().least) return;
  std::string line = state().clock ? to_iso8601(state().clock->now()) + " " : std::string();
  line.append(kLevels.text(level)).append(" ").append(module).append(": ").append(what);
  for (const auto& [key, value] : fields) {
    line.append(" ").append(key).append("=");
    append_value(line, value);
  }
  static Mutex one_line_at_a_time;
  const MutexLock lock(one_line_at_a_time);
  if (state().sink)
    state().sink(level, line);
  else
    std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace trainyard
