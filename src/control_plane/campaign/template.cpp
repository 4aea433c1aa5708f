#include "campaign/template.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/text.hpp"

namespace trainyard::campaign {
namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_character(char c) { return is_name_start(c) || (c >= '0' && c <= '9') || c == '.'; }

// Returns the name in `{name}` that starts at `at`; "" if none does.
std::string_view name_at(std::string_view text, size_t at) {
  size_t end = at + 1;
  if (end >= text.size() || !is_name_start(text[end])) return "";
  while (end < text.size() && is_name_character(text[end])) ++end;
  return end < text.size() && text[end] == '}' ? text.substr(at + 1, end - at - 1)
                                               : std::string_view();
}

Result<const Json*> value_of(std::string_view name, const Values& values) {
  const auto found = values.find(std::string(name));
  if (found != values.end()) return &found->second;
  std::string names;
  for (const auto& [known, value] : values) names += (names.empty() ? "" : ", ") + known;
  return invalid("unknown name {" + shorten(name, 60) + "}; known names: " + names);
}

// Returns true for members whose values are always text.
bool holds_text(const std::string& member) {
  static constexpr const char* kNames[] = {"HyperParameters",     "Environment", "environment",
                                           "parameters",          "Tags",        "tags",
                                           "resourceRequirements"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* name) { return member == name; });
}

Result<Json> fill_within(const Json& document, const Values& values, bool text_only) {
  if (document.is_string()) {
    const auto& text = document.get_ref<const std::string&>();
    const std::string_view name = text.starts_with('{') ? name_at(text, 0) : std::string_view();
    if (!text_only && !name.empty() && name.size() + 2 == text.size()) {
      const Json& value = *TRY(value_of(name, values));
      if (value.is_number()) return value;
    }
    return Json(TRY(fill_text(text, values)));
  }
  if (document.is_object()) {
    Json out = Json::object();
    for (const auto& [key, value] : document.items())
      out[key] = TRY(fill_within(value, values, text_only || holds_text(key)).in(key));
    return out;
  }
  if (document.is_array()) {
    Json out = Json::array();
    for (const Json& each : document) out.push_back(TRY(fill_within(each, values, text_only)));
    return out;
  }
  return document;
}

}  // namespace

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "";
  if (value.is_number_float()) {
    // A catalogue's 3.0 is written as 3: an instance count of 3.0 would be invalid.
    const double number = value.get<double>();
    constexpr double kWholeMax = 1e15;
    if (std::abs(number) < kWholeMax && number == std::floor(number))
      return std::to_string(int64_t(number));
    // As databases format it: 7 * 0.1 has no visible rounding error in the seventeenth digit.
    char text[40];
    std::snprintf(text, sizeof text, "%.15g", number);
    return text;
  }
  return dump(value);
}

Result<std::string> fill_text(std::string_view text, const Values& values) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '{') {
      out += text[at++];
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == '{') {
      if (const auto name = name_at(text, at + 1);
          !name.empty() && text.substr(at + name.size() + 3).starts_with('}')) {
        out += "{" + std::string(name) + "}";
        at += name.size() + 4;
        continue;
      }
    }
    const auto name = name_at(text, at);
    if (name.empty() || (at > 0 && text[at - 1] == '$')) {
      out += text[at++];
      continue;
    }
    out += text_of(*TRY(value_of(name, values)));
    at += name.size() + 2;
  }
  return out;
}

Result<Json> fill(const Json& document, const Values& values) {
  return fill_within(document, values, false);
}

}  // namespace trainyard::campaign
