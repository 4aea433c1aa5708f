// Formats text for a terminal: widths, colours, bars, sparklines, short durations and ages. Removes
// control sequences from untrusted text.
//
// Threads: pure. Units: widths are columns of a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace trainyard::cli {

// OutputStyle describes what an output supports.
struct OutputStyle {
  bool colours = false;
  bool live = false;     // lines may be redrawn
  bool unicode = false;  // blocks, arrows, ellipses
  int columns = 0;       // 0 = unlimited, as in a file
  int rows = 24;
};

// TerminalEnvironment has the inputs of style_of(): the terminal's size, and environment variables.
struct TerminalEnvironment {
  bool terminal = false;
  int columns = 0, rows = 0;
  // $NO_COLOR; $TERM; the first of LC_ALL, LC_CTYPE, LANG that is set
  std::string no_color, term, locale;
};
OutputStyle style_of(const TerminalEnvironment& environment);

enum class Paint { none, bold, dim, red, green, yellow, blue, cyan };
std::string paint(const OutputStyle& style, Paint paint, std::string_view text);
// Colours text with one of twelve colours, readable on dark and light backgrounds. Equal numbers
// get the same colour.
std::string paint_by_number(const OutputStyle& style, uint32_t number, std::string_view text);

// Returns the width of text, without its colour sequences.
int width_of(std::string_view text);
// Returns the length in bytes of the longest beginning of text that is at most `width` columns
// wide, but at least one character.
size_t bytes_within(std::string_view text, int width);
// Returns the character that marks a cut: "…", or "~" without Unicode.
std::string_view ellipsis(const OutputStyle& style);
// Cuts text to `width` columns, with an ellipsis at the end; colours are kept and reset.
std::string fit(const OutputStyle& style, std::string_view text, int width);
// Cuts text without colours to `width` columns, with an ellipsis in its middle.
std::string fit_middle(const OutputStyle& style, std::string_view text, int width);
// Cuts text, or fills it with blanks, to exactly `width` columns. `to_the_right`: aligns it there.
std::string pad(const OutputStyle& style, std::string_view text, int width,
                bool to_the_right = false);

// Formats a bar: "[#####.....]", or of Unicode blocks. `part`: 0 to 1.
std::string bar(const OutputStyle& style, double part, int width);
// Formats a sparkline with one character per value, scaled from 0 to `top`. Returns "" without
// Unicode.
std::string sparkline(const OutputStyle& style, const std::vector<double>& values, double top);

// Formats "42s", "4m05s", "2h03m", "3d04h".
std::string duration_text(Duration duration);
// Formats "2026-11-20 09:45:00Z": in UTC, like the API and the logs.
std::string time_text(Instant instant);

// Makes untrusted text safe for a terminal: replaces control characters, line ends too, and
// characters that change the direction of text, by "?", and carriage returns by blanks. Keeps tabs.
// Keeps colours if style.colours, and resets them at the end; else removes them.
std::string harmless(const OutputStyle& style, std::string_view text);
// Makes untrusted text of several lines safe for a terminal: as harmless(), but removes colours,
// replaces a tab by four blanks, and keeps line ends ("\r\n" becomes "\n").
std::string plain_lines(std::string_view text);
// Makes untrusted text safe, as plain_lines(), and joins its lines with blanks.
std::string plain_text(std::string_view text);

}  // namespace trainyard::cli
