#include "cli/layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/enum_table.hpp"
#include "base/text.hpp"

namespace trainyard::cli {
namespace {

constexpr std::string_view kReset = "\033[0m";
constexpr int kHostColours[] = {39, 208, 76, 170, 44, 220, 99, 203, 37, 142, 111, 180};
constexpr size_t kBlocks = 8;
constexpr const char* kRising[kBlocks] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kGrowing[kBlocks] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

constexpr EnumTable<Paint> kCodes{"paint",
                                  {{Paint::none, ""},
                                   {Paint::bold, "1"},
                                   {Paint::dim, "2"},
                                   {Paint::red, "31"},
                                   {Paint::green, "32"},
                                   {Paint::yellow, "33"},
                                   {Paint::blue, "34"},
                                   {Paint::cyan, "36"}}};

// Returns the length of a colour sequence at the start of text (ESC [ digits and semicolons m), or
// 0.
size_t colour_sequence(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

struct Character {
  size_t bytes = 1;
  uint32_t point = 0;
};

constexpr uint32_t kReplacement = 0xFFFD;

// Returns the character at the start of UTF-8 text. An ill-formed byte is a character by itself,
// kReplacement, so that it cannot hide a control character behind it.
Character first_character(std::string_view text) {
  constexpr uint32_t kPointMin[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto byte = [&](size_t i) { return uint32_t(uint8_t(text[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const size_t bytes = lead >= 0xF8   ? 0
                       : lead >= 0xF0 ? 4
                       : lead >= 0xE0 ? 3
                       : lead >= 0xC0 ? 2
                                      : 0;
  if (bytes == 0 || bytes > text.size()) return {1, kReplacement};
  uint32_t point = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {1, kReplacement};
    point = point << 6 | (byte(i) & 0x3F);
  }
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < kPointMin[bytes] || point > 0x10FFFF || surrogate) return {1, kReplacement};
  return {bytes, point};
}

// Returns whether a character controls a terminal or changes the direction of text.
bool is_control(uint32_t point) {
  const auto in = [&](uint32_t first, uint32_t last) { return point >= first && point <= last; };
  return point < 0x20 || in(0x7F, 0x9F) || point == 0x61C || in(0x200E, 0x200F) ||
         in(0x2028, 0x202E) || in(0x2066, 0x2069) || point == 0xFEFF || point == kReplacement;
}

int columns_of(uint32_t point) {
  const auto in = [&](uint32_t first, uint32_t last) { return point >= first && point <= last; };
  if (in(0x300, 0x36F) || in(0x200B, 0x200F) || in(0xFE00, 0xFE0F)) return 0;
  // Scripts and symbols that are two columns wide in terminals.
  const bool wide = in(0x1100, 0x115F) || in(0x2E80, 0xA4CF) || in(0xAC00, 0xD7A3) ||
                    in(0xF900, 0xFAFF) || in(0xFE30, 0xFE6F) || in(0xFF00, 0xFF60) ||
                    in(0xFFE0, 0xFFE6) || in(0x1F300, 0x1FAFF) || in(0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

}  // namespace

OutputStyle style_of(const TerminalEnvironment& environment) {
  const bool dumb = environment.term.empty() || environment.term == "dumb";
  const std::string locale = to_lower(environment.locale);
  OutputStyle style;
  style.live = environment.terminal && !dumb;
  style.colours = style.live && environment.no_color.empty();
  style.unicode = style.live && (locale.find("utf-8") != std::string::npos ||
                                 locale.find("utf8") != std::string::npos);
  if (environment.terminal) {
    style.columns = environment.columns > 0 ? environment.columns : 80;
    style.rows = environment.rows > 0 ? environment.rows : 24;
  }
  return style;
}

std::string paint(const OutputStyle& style, Paint paint, std::string_view text) {
  if (!style.colours || paint == Paint::none || text.empty()) return std::string(text);
  return "\033[" + std::string(kCodes.text(paint)) + "m" + std::string(text) + std::string(kReset);
}

std::string paint_by_number(const OutputStyle& style, uint32_t number, std::string_view text) {
  if (!style.colours) return std::string(text);
  const int colour = kHostColours[number % std::size(kHostColours)];
  return "\033[38;5;" + std::to_string(colour) + "m" + std::string(text) + std::string(kReset);
}

int width_of(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    if (const size_t skipped = colour_sequence(text)) {
      text.remove_prefix(skipped);
      continue;
    }
    const Character first = first_character(text);
    width += columns_of(first.point);
    text.remove_prefix(first.bytes);
  }
  return width;
}

size_t bytes_within(std::string_view text, int width) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Character next = first_character(text.substr(bytes));
    width -= columns_of(next.point);
    if (width < 0 && bytes > 0) break;
    bytes += next.bytes;
  }
  return bytes;
}

std::string_view ellipsis(const OutputStyle& style) { return style.unicode ? "…" : "~"; }

std::string fit(const OutputStyle& style, std::string_view text, int width) {
  if (width_of(text) <= width) return std::string(text);
  if (width <= 0) return "";
  std::string out;
  int used = 0;
  bool coloured = false;
  while (!text.empty()) {
    if (const size_t bytes = colour_sequence(text)) {
      out += text.substr(0, bytes);
      coloured = text.substr(0, bytes) != kReset;
      text.remove_prefix(bytes);
      continue;
    }
    const Character first = first_character(text);
    if (used + columns_of(first.point) > width - 1) break;
    used += columns_of(first.point);
    out += text.substr(0, first.bytes);
    text.remove_prefix(first.bytes);
  }
  out += ellipsis(style);
  if (coloured) out += kReset;
  return out;
}

std::string fit_middle(const OutputStyle& style, std::string_view text, int width) {
  constexpr int kWidthMin = 5;  // less has no two sides
  if (width_of(text) <= width) return std::string(text);
  if (width < kWidthMin) return fit(style, text, width);
  const std::string_view start = text.substr(0, bytes_within(text, width / 2));
  const int left = width - 1 - width_of(start);
  std::string_view end = text.substr(start.size());
  while (width_of(end) > left) end.remove_prefix(first_character(end).bytes);
  return std::string(start) + std::string(ellipsis(style)) + std::string(end);
}

std::string pad(const OutputStyle& style, std::string_view text, int width, bool to_the_right) {
  std::string fitted = fit(style, text, width);
  const std::string blanks(size_t(std::max(0, width - width_of(fitted))), ' ');
  return to_the_right ? blanks + fitted : fitted + blanks;
}

std::string bar(const OutputStyle& style, double part, int width) {
  part = std::isfinite(part) ? std::clamp(part, 0.0, 1.0) : 0;
  if (!style.unicode) {
    const int inside = std::max(1, width - 2);
    const int full = int(std::floor(part * inside + 1e-9));
    return "[" + std::string(size_t(full), '#') + std::string(size_t(inside - full), '.') + "]";
  }
  const auto eighths = size_t(std::lround(part * width * double(kBlocks)));
  std::string out;
  for (size_t i = 0; i < eighths / kBlocks; ++i) out += "█";
  int drawn = int(eighths / kBlocks);
  if (eighths % kBlocks != 0) out += kGrowing[eighths % kBlocks], ++drawn;
  for (; drawn < width; ++drawn) out += "░";
  return out;
}

std::string sparkline(const OutputStyle& style, const std::vector<double>& values, double top) {
  if (!style.unicode) return "";
  std::string out;
  for (const double value : values) {
    const double part = top > 0 && std::isfinite(value) ? std::clamp(value / top, 0.0, 1.0) : 0;
    out += kRising[std::min(kBlocks - 1, size_t(part * double(kBlocks)))];
  }
  return out;
}

std::string duration_text(Duration duration) {
  const int64_t seconds = std::max<int64_t>(0, duration / 1s);
  char text[32];
  const auto two = [&](const char* form, int64_t a, int64_t b) {
    std::snprintf(text, sizeof text, form, static_cast<long long>(a), static_cast<long long>(b));
    return std::string(text);
  };
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return two("%lldm%02llds", seconds / 60, seconds % 60);
  if (seconds < 86400) return two("%lldh%02lldm", seconds / 3600, seconds % 3600 / 60);
  return two("%lldd%02lldh", seconds / 86400, seconds % 86400 / 3600);
}

std::string time_text(Instant instant) {
  std::string text = to_iso8601(instant, false);
  if (text.size() == 20) text[10] = ' ';
  return text;
}

std::string harmless(const OutputStyle& style, std::string_view text) {
  std::string out;
  bool coloured = false;
  while (!text.empty()) {
    if (const size_t bytes = colour_sequence(text)) {
      if (style.colours) {
        out += text.substr(0, bytes);
        coloured = text.substr(0, bytes) != kReset;
      }
      text.remove_prefix(bytes);
      continue;
    }
    const Character first = first_character(text);
    if (first.point == '\t' || !is_control(first.point))
      out += text.substr(0, first.bytes);
    else
      out += first.point == '\r' ? ' ' : '?';
    text.remove_prefix(first.bytes);
  }
  if (coloured) out += kReset;
  return out;
}

std::string plain_lines(std::string_view text) {
  constexpr std::string_view kTab = "    ";
  std::string out;
  while (!text.empty()) {
    if (const size_t bytes = colour_sequence(text)) {
      text.remove_prefix(bytes);
      continue;
    }
    const Character first = first_character(text);
    if (first.point == '\n' || !is_control(first.point))
      out += text.substr(0, first.bytes);
    else if (first.point == '\t')
      out += kTab;
    else if (!text.starts_with("\r\n"))
      out += first.point == '\r' ? ' ' : '?';
    text.remove_prefix(first.bytes);
  }
  return out;
}

std::string plain_text(std::string_view text) {
  std::string out;
  for (const char c : plain_lines(text)) {
    if (c != '\n')
      out += c;
    else if (!out.empty() && !out.ends_with(' '))
      out += ' ';
  }
  return out;
}

}  // namespace trainyard::cli
