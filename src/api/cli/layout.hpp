// Formats text for a terminal: widths, colours, bars, sparklines, short durations and ages. Removes
// what untrusted text could do to the terminal.
//
// Threads: pure. Units: widths are columns of a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace trainyard::cli {

// The abilities of the output. Colours and redrawing are used only if `colours` and `live` are set.
struct Looks {
  bool colours = false;
  bool live = false;     // lines may be redrawn
  bool unicode = false;  // blocks, arrows, ellipses
  int columns = 0;       // 0: unlimited, as in a file
  int rows = 24;
};

// The inputs from which looks_of() derives them: the terminal, and variables of the environment.
struct Surroundings {
  bool terminal = false;
  int columns = 0, rows = 0;
  // $NO_COLOR; $TERM; the first of LC_ALL, LC_CTYPE, LANG that is set
  std::string no_color, term, locale;
};
Looks looks_of(const Surroundings& surroundings);

enum class Paint { none, bold, dim, red, green, yellow, blue, cyan };
std::string paint(const Looks& looks, Paint paint, std::string_view text);
// Colours text with one of twelve colours, readable on dark and light backgrounds. Equal numbers
// give equal colours.
std::string paint_by_number(const Looks& looks, uint32_t number, std::string_view text);

// Returns the width of text; colour sequences have none.
int width_of(std::string_view text);
// Returns the length of the longest start of text that is at most `width` columns wide, but at
// least one character.
size_t bytes_within(std::string_view text, int width);
// Returns the character that stands for what was cut.
std::string_view ellipsis(const Looks& looks);
// Cuts text to `width` columns, with an ellipsis at the end; colours are kept and reset.
std::string fit(const Looks& looks, std::string_view text, int width);
// Cuts text without colours to `width` columns, with an ellipsis in its middle.
std::string fit_middle(const Looks& looks, std::string_view text, int width);
// Cuts or fills text to exactly `width` columns.
std::string pad(const Looks& looks, std::string_view text, int width, bool to_the_right = false);

// Formats "[#####.....]", or blocks. `part` is 0 to 1.
std::string bar(const Looks& looks, double part, int width);
// Formats one character per value, scaled from 0 to `top`. Empty without Unicode.
std::string sparkline(const Looks& looks, const std::vector<double>& values, double top);

// Formats "42s", "4m05s", "2h03m", "3d04h".
std::string duration_text(Duration duration);
// Formats "2026-11-20 09:45:00Z": in UTC, like the API and the logs.
std::string time_text(Instant instant);

// Replaces control characters in untrusted text, and characters that change the direction of text,
// by
// "?"; keeps tabs, and colours if looks.colours.
std::string harmless(const Looks& looks, std::string_view text);
// The same without colours and tabs, but with line ends.
std::string plain_lines(std::string_view text);
// The same in one line: line ends become blanks.
std::string plain_text(std::string_view text);

}  // namespace trainyard::cli
