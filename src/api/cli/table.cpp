#include "cli/table.hpp"

#include <algorithm>
#include <utility>

namespace trainyard::cli {
namespace {

constexpr int kGap = 2;          // between columns
constexpr int kBelowIndent = 2;  // of texts below their row

// The layout of a table: a width of 0 is a column that is not shown.
struct Shape {
  std::vector<int> widths;
  std::vector<size_t> below;  // columns whose texts are below the rows
};

int total_of(const std::vector<int>& widths) {
  int sum = 0, shown = 0;
  for (const int width : widths)
    if (width > 0) sum += width, ++shown;
  return sum + kGap * std::max(0, shown - 1);
}

int floor_of(const Column& column, int width) {
  return column.width_min > 0 ? std::min(width, column.width_min) : width;
}

// Leaves out columns until the others fit at their smallest widths. Of columns with equal
// priorities the last one is left out first.
void drop_columns(const std::vector<Column>& columns, int width_max, Shape& shape) {
  for (;;) {
    std::vector<int> floors = shape.widths;
    size_t first = columns.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      floors[i] = floor_of(columns[i], floors[i]);
      if (floors[i] > 0 && columns[i].drop > 0 &&
          (first == columns.size() || columns[i].drop >= columns[first].drop))
        first = i;
    }
    if (first == columns.size() || total_of(floors) <= width_max) return;
    if (columns[first].below) shape.below.push_back(first);
    shape.widths[first] = 0;
  }
}

// Makes columns narrower, the widest first: those that may become narrower, then all.
void shrink_columns(const std::vector<Column>& columns, int width_max, Shape& shape) {
  auto& widths = shape.widths;
  for (const bool all : {false, true})
    while (total_of(widths) > width_max) {
      size_t widest = columns.size();
      for (size_t i = 0; i < columns.size(); ++i)
        if (widths[i] > (all ? 1 : floor_of(columns[i], widths[i])) &&
            (widest == columns.size() || widths[i] > widths[widest]))
          widest = i;
      if (widest == columns.size()) break;
      --widths[widest];
    }
}

Shape shape_of(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
               int width_max) {
  Shape shape{std::vector<int>(columns.size(), 0), {}};
  for (const auto& row : rows)
    for (size_t i = 0; i < columns.size() && i < row.size(); ++i)
      shape.widths[i] = std::max(shape.widths[i], width_of(row[i].text));
  for (size_t i = 0; i < columns.size(); ++i)
    if (shape.widths[i] > 0)
      shape.widths[i] = std::max(shape.widths[i], width_of(columns[i].title));
  if (width_max <= 0) return shape;
  for (int& width : shape.widths) width = std::min(width, width_max);
  drop_columns(columns, width_max, shape);
  shrink_columns(columns, width_max, shape);
  std::sort(shape.below.begin(), shape.below.end());
  return shape;
}

// Wraps text to at most `lines_max` lines (0: all); the last one shows that there is more.
std::vector<std::string> wrapped(const OutputStyle& style, std::string_view text, int width,
                                 size_t lines_max) {
  auto lines = wrap(text, width);
  if (lines_max == 0 || lines.size() <= lines_max) return lines;
  lines.resize(lines_max);
  std::string& last = lines.back();
  last = width_of(last) < width ? last.append(ellipsis(style)) : fit(style, last + " ", width);
  return lines;
}

std::vector<std::string> lines_of(const OutputStyle& style, const Column& column, const Cell& cell,
                                  int width) {
  switch (column.overflow) {
    case Overflow::cut:
      return {fit(style, cell.text, width)};
    case Overflow::middle:
      return {fit_middle(style, cell.text, width)};
    case Overflow::wrap:
      return wrapped(style, cell.text, width, column.lines_max);
  }
  return {};
}

std::string blanks(int count) { return std::string(size_t(std::max(0, count)), ' '); }

// Formats the lines of one row, which is as high as its highest cell.
std::string row_text(const OutputStyle& style, const std::vector<Column>& columns,
                     const Shape& shape, const std::vector<Cell>& row) {
  std::vector<std::vector<std::string>> cells(columns.size());
  size_t height = 1;
  for (size_t i = 0; i < columns.size() && i < row.size(); ++i) {
    if (shape.widths[i] == 0) continue;
    cells[i] = lines_of(style, columns[i], row[i], shape.widths[i]);
    height = std::max(height, cells[i].size());
  }
  std::string out;
  for (size_t line = 0; line < height; ++line) {
    std::string gap;  // written before the next text: a line ends without blanks
    for (size_t i = 0; i < columns.size(); ++i) {
      if (shape.widths[i] == 0) continue;
      const std::string text = line < cells[i].size() ? cells[i][line] : "";
      const std::string fill = blanks(shape.widths[i] - width_of(text));
      if (!text.empty()) {
        out += gap + (columns[i].right ? fill : "") + paint(style, row[i].paint, text);
        gap.clear();
      }
      if (text.empty() || !columns[i].right) gap += fill;
      gap += blanks(kGap);
    }
    out += "\n";
  }
  for (const size_t i : shape.below) {
    if (i >= row.size() || row[i].text.empty()) continue;
    for (const auto& text : wrapped(style, row[i].text, std::max(1, style.columns - kBelowIndent),
                                    columns[i].lines_max))
      out += blanks(kBelowIndent) + paint(style, row[i].paint, text) + "\n";
  }
  return out;
}

bool breaks_after(char c) { return std::string_view("/:,;=_-.)").find(c) != std::string::npos; }

// Returns the part of a long word that fits: up to punctuation, unless that leaves less than half
// of the line used.
std::string_view part_of_word(std::string_view word, int width) {
  const size_t bytes = std::max<size_t>(bytes_within(word, width), 1);
  for (size_t end = bytes; end > bytes / 2; --end)
    if (breaks_after(word[end - 1])) return word.substr(0, end);
  return word.substr(0, bytes);
}

// Wraps one line of a text. Its indentation stays in front of its first part.
void wrap_line(std::string_view text, int width, std::vector<std::string>& lines) {
  const size_t indent = std::min(text.find_first_not_of(' '), text.size());
  std::string line(std::min(indent, size_t(width / 2)), ' ');
  bool has_word = false;
  text.remove_prefix(indent);
  const auto end_line = [&] {
    if (has_word) lines.push_back(std::exchange(line, std::string()));
    has_word = false;
  };
  while (!text.empty()) {
    const size_t blank = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, blank);
    text.remove_prefix(blank);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (has_word && width_of(line) + 1 + width_of(word) > width) end_line();
    while (width_of(line) + width_of(word) + has_word > width && width_of(word) > 0) {
      const auto part = part_of_word(word, std::max(1, width - width_of(line)));
      line += part;
      has_word = true;
      end_line();
      word.remove_prefix(part.size());
    }
    if (word.empty()) continue;
    line += (has_word ? " " : "") + std::string(word);
    has_word = true;
  }
  end_line();
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (width <= 0 || width_of(line) <= width)
      lines.emplace_back(line);
    else
      wrap_line(line, width, lines);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

std::string paragraph(const OutputStyle& style, std::string_view text, Paint how,
                      std::string_view label, int indent) {
  constexpr int kWidthMin = 10;  // of the text, next to any label
  const int width = style.columns > 0 ? std::max(kWidthMin, style.columns - indent) : 0;
  std::string out;
  for (const auto& line : wrap(plain_lines(text), width)) {
    out += out.empty()    ? paint(style, Paint::dim, label) + blanks(indent - width_of(label))
           : line.empty() ? ""
                          : blanks(indent);
    out += paint(style, how, line) + "\n";
  }
  return out;
}

std::string table(const OutputStyle& style, const std::vector<Column>& columns,
                  const std::vector<std::vector<Cell>>& all) {
  auto rows = all;
  for (auto& row : rows)
    for (Cell& cell : row) cell.text = plain_text(cell.text);
  const Shape shape = shape_of(columns, rows, style.columns);
  std::vector<Column> heads = columns;
  std::vector<Cell> titles;
  for (Column& head : heads) {
    head.overflow = Overflow::cut;
    titles.push_back({plain_text(head.title), Paint::dim});
  }
  std::string out = row_text(style, heads, {shape.widths, {}}, titles);
  for (const auto& row : rows) out += row_text(style, columns, shape, row);
  return out;
}

}  // namespace trainyard::cli
