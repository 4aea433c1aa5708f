#include "base/log.hpp"

#include <algorithm>
#include <cstdio>

#include "base/enum_table.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"

namespace trainyard {
namespace {

constexpr size_t kFieldBytesMax = 2000;  // keeps lines readable, even if a peer sent a long text
constexpr size_t kLineBytesUsual = 512;

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

bool is_control(char c) { return uint8_t(c) < 0x20 || c == 0x7f; }

bool is_plain(char c) { return !is_control(c) && c != ' ' && c != '"' && c != '\\' && c != '='; }

// Quotes values with blanks or control characters, so that an event is always one line.
void append_value(std::string& line, std::string_view value) {
  const auto is_ascii = [](char c) { return uint8_t(c) < 0x80; };
  std::string text;
  std::string_view shown = value;
  if (value.size() > kFieldBytesMax || !std::ranges::all_of(value, is_ascii))
    shown = text = to_utf8(shorten(value, kFieldBytesMax));
  if (!shown.empty() && std::ranges::all_of(shown, is_plain)) {
    line += shown;
    return;
  }
  line += '"';
  for (const char c : shown) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n')
      line += "\\n";
    else if (is_control(c))
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
  std::string line;
  line.reserve(kLineBytesUsual);
  if (state().clock) line.append(to_iso8601(state().clock->now())).append(" ");
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
