// Formats text for a terminal: widths, tables that fit, bars, sparklines, short durations and ages.
//
// Threads: pure. Units: widths are columns of a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace trainyard::cli {

// The abilities of the output. Without `colours` and `live` nothing is coloured or redrawn.
struct Looks {
  bool colours = false;
  bool live = false;     // lines may be redrawn
  bool unicode = false;  // blocks, arrows, ellipses
  int columns = 0;       // 0: unlimited, as in a file
  int rows = 24;
};

// The inputs of that decision: whether it is a terminal, and the environment's variables.
struct Surroundings {
  bool terminal = false;
  int columns = 0, rows = 0;
  std::string no_color, term, locale;  // $NO_COLOR; $TERM; the first of LC_ALL, LC_CTYPE, LANG that is set
};
Looks looks_of(const Surroundings& surroundings);

enum class Paint { none, bold, dim, red, green, yellow, blue, cyan };
std::string paint(const Looks& looks, Paint paint, std::string_view text);
// One of twelve colours that are distinct on dark and light backgrounds: the same number, the same colour.
std::string paint_by_number(const Looks& looks, uint32_t number, std::string_view text);

// Columns that the text takes; colour sequences take none.
int width_of(std::string_view text);
// At most `width` columns, the last an ellipsis when it was cut; colours are kept and ended.
std::string fit(const Looks& looks, std::string_view text, int width);
// Exactly `width` columns.
std::string pad(const Looks& looks, std::string_view text, int width, bool to_the_right = false);

struct Cell {
  std::string text;
  Paint paint = Paint::none;
};
struct Column {
  std::string title;
  bool right = false;  // numbers
  int width_min = 0;   // 0: never narrower than its content; else may be cut down to this
};
// A title line and a line for each row. Columns without any content are left out.
std::string table(const Looks& looks, const std::vector<Column>& columns,
                  const std::vector<std::vector<Cell>>& rows);

// "[#####.....]" or blocks; `part` 0 to 1.
std::string bar(const Looks& looks, double part, int width);
// One character a value, scaled from 0 to `top`. Empty where there is no Unicode.
std::string sparkline(const Looks& looks, const std::vector<double>& values, double top);

// "42s", "4m05s", "2h03m", "3d04h".
std::string duration_text(Duration duration);
// "2026-11-20 09:45:00Z": UTC, as the API and the logs have it.
std::string time_text(Instant instant);

// Escapes or removes control sequences in foreign text; colours stay if `colours`.
std::string harmless(const Looks& looks, std::string_view text);

}  // namespace trainyard::cli
