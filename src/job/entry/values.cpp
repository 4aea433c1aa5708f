#include "entry/values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace trainyard::entry {
namespace {

bool is_whole_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns repr(float): the shortest digits that read back the same; an exponent below 1e-4 and from
// 1e16 on.
std::string python_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char buffer[64];
  const auto written =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(written.ptr - buffer));
  std::string sign;
  if (text.starts_with('-')) {
    sign = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  std::string_view exponent_text = text.substr(e + 1);
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  int exponent = 0;
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    std::string mantissa = digits.substr(0, 1);
    if (digits.size() > 1) mantissa += "." + digits.substr(1);
    std::string power = std::to_string(std::abs(exponent));
    if (power.size() < 2) power = "0" + power;
    return sign + mantissa + (exponent < 0 ? "e-" : "e+") + power;
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

// Returns repr(value), as a part of a list or an object.
std::string python_repr(const Json& value);

std::string python_quoted(const std::string& text) {
  const char quote =
      text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string quoted(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\r') {
      quoted += "\\r";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      quoted += "\\x" + to_hex(std::string_view(&c, 1));
    } else {
      quoted += c;
    }
  }
  return quoted + quote;
}

std::string python_text(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>() : python_repr(value);
}

std::string python_repr(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "None";
    case Json::value_t::boolean:
      return value.get<bool>() ? "True" : "False";
    case Json::value_t::number_float:
      return python_float(value.get<double>());
    case Json::value_t::string:
      return python_quoted(value.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::string text = "[";
      for (const auto& each : value) text += (text.size() > 1 ? ", " : "") + python_repr(each);
      return text + "]";
    }
    case Json::value_t::object: {
      std::string text = "{";
      for (const auto& [name, each] : value.items())
        text += (text.size() > 1 ? ", " : "") + python_quoted(name) + ": " + python_repr(each);
      return text + "}";
    }
    default:
      return dump(value);  // whole numbers
  }
}

std::string json_text(const std::string& text) {
  return Json(text).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

}  // namespace

Json value_of(std::string_view text) {
  auto value = parse_json(text);
  if (!value) return std::string(text);
  if (value->is_number_float() && is_whole_number(trim(text))) return std::string(text);
  return std::move(*value);
}

std::string python_json(const Json& value) {
  switch (value.type()) {
    case Json::value_t::number_float:
      return python_float(value.get<double>());
    case Json::value_t::string:
      return json_text(value.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::string text = "[";
      for (const auto& each : value) text += (text.size() > 1 ? "," : "") + python_json(each);
      return text + "]";
    }
    case Json::value_t::object: {
      std::string text = "{";
      for (const auto& [name, each] : value.items())
        text += (text.size() > 1 ? "," : "") + json_text(name) + ":" + python_json(each);
      return text + "}";
    }
    default:
      return dump(value);
  }
}

std::string variable_text(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get_ref<const std::string&>() : python_json(value);
}

std::string argument_text(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_object()) return python_text(value);
  std::string text;
  for (const auto& [name, each] : value.items())
    text += (text.empty() ? "" : ",") + name + "=" + python_text(each);
  return text;
}

std::vector<std::string> user_arguments(const Values& values) {
  std::vector<std::string> arguments;
  for (const auto& [name, value] : values) {
    // One character, not one byte.
    arguments.push_back(name.empty() ? "" : (count_characters(name) > 1 ? "--" : "-") + name);
    arguments.push_back(argument_text(value));
  }
  return arguments;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos)
    return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\"'\"'";
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace trainyard::entry
