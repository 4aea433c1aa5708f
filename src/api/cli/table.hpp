// Lays out tables and paragraphs for a terminal: selects columns, their widths, and line breaks.
//
// A line is never wider than the terminal (OutputStyle::columns). If a table is too wide, columns
// are left out by their priority, then columns become narrower: their texts are cut, or wrapped at
// words. Without a terminal each row is one line with all columns, uncut.
//
// Texts are untrusted: control characters do not reach the terminal (plain_text).
//
// Threads: pure. Units: widths are columns of a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/layout.hpp"

namespace trainyard::cli {

// Overflow tells how to show a text that is wider than its column.
enum class Overflow {
  cut,     // "pytorch-trai…"
  middle,  // "pytorch…-0815": for names that differ at their ends
  wrap,    // continues on further lines
};

struct Column {
  std::string title;
  bool right = false;  // numbers
  int width_min = 0;   // 0 = never narrower than its content
  int drop = 0;        // 0 = always shown; the column with the highest value is left out first
  Overflow overflow = Overflow::cut;
  bool below = false;    // if left out, its text is shown below the row
  size_t lines_max = 0;  // of a wrapped text; 0 = all
};

struct Cell {
  std::string text;
  Paint paint = Paint::none;
};

// Formats a line of titles and the rows. Leaves out columns without content.
std::string table(const OutputStyle& style, const std::vector<Column>& columns,
                  const std::vector<std::vector<Cell>>& rows);

// Breaks text at blanks and line ends into lines of at most `width` columns; 0 = at line ends only.
// A word that is wider than a line is broken after punctuation, if it has any. Returns at least
// one line.
std::vector<std::string> wrap(std::string_view text, int width);

// Formats a text as lines that fit on the terminal. The first begins with `label`, the others with
// `indent` blanks.
std::string paragraph(const OutputStyle& style, std::string_view text, Paint how = Paint::none,
                      std::string_view label = {}, int indent = 0);

}  // namespace trainyard::cli
