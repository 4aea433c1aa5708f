#include "config/shown_value.hpp"

#include <charconv>
#include <cmath>
#include <sstream>

#include "base/text.hpp"

namespace trainyard::config {
namespace {

constexpr size_t kShownBytesMax = 80;  // of a value; the line number shows where the rest is

void append_escaped(char byte, std::string& text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  if (byte == '"' || byte == '\\') {
    text += {'\\', byte};
  } else if (byte == '\n') {
    text += "\\n";
  } else if (byte == '\t') {
    text += "\\t";
  } else if ((byte >= 0 && byte < ' ') || byte == 0x7f) {
    text += {'\\', 'u', '0', '0', kHex[size_t(byte >> 4)], kHex[size_t(byte & 15)]};
  } else {
    text += byte;
  }
}

// Stops soon after the limit, since the rest is not shown.
bool separate(size_t index, std::string& text) {
  if (index > 0) text += ", ";
  return text.size() <= kShownBytesMax;
}

void append(const toml::value& value, std::string& text) {
  if (value.is_string()) {
    text += format_text(value.as_string().str);
  } else if (value.is_boolean()) {
    text += value.as_boolean() ? "true" : "false";
  } else if (value.is_integer()) {
    text += std::to_string(value.as_integer());
  } else if (value.is_floating()) {
    text += format_number(value.as_floating());
  } else if (value.is_array()) {
    text += '[';
    size_t index = 0;
    for (const auto& element : value.as_array()) {
      if (!separate(index++, text)) break;
      append(element, text);
    }
    text += ']';
  } else if (value.is_table()) {
    text += '{';
    size_t index = 0;
    for (const auto& [key, element] : value.as_table()) {
      if (!separate(index++, text)) break;
      text += key + " = ";
      append(element, text);
    }
    text += '}';
  } else {
    std::ostringstream date;
    date << value;
    text += date.str();
  }
}

}  // namespace

std::string format_text(std::string_view text) {
  std::string out = "\"";
  for (const char byte : shorten(to_utf8(text), kShownBytesMax)) append_escaped(byte, out);
  return out + '"';
}

std::string format_value(const toml::value& value) {
  std::string text;
  append(value, text);
  // The quotes of a string do not count, so that its end stays visible.
  return value.is_string() ? text : shorten(text, kShownBytesMax);
}

std::string_view describe_type(const toml::value& value) {
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "a boolean";
  if (value.is_integer() || value.is_floating()) return "a number";
  if (value.is_array()) return "a list";
  if (value.is_table()) return "a table";
  return "a date or a time";
}

std::string format_number(double number) {
  // Whole numbers below this are shown in full: 1000000 rather than 1e+06.
  constexpr double kFixedMax = 1e15;
  const bool whole = std::abs(number) < kFixedMax && number == std::trunc(number);
  char text[32];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, number,
                    whole ? std::chars_format::fixed : std::chars_format::general);
  return std::string(text, end);
}

}  // namespace trainyard::config
