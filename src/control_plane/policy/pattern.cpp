#include "policy/pattern.hpp"

#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "base/text.hpp"

namespace trainyard::policy {
namespace {

// -- '*' alone: bytes ----------------------------------------------------------------------------

bool match_many(std::string_view pattern, std::string_view text) {
  size_t star = pattern.find(kAnyMany);
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  // The earliest match of each part between two stars leaves the most text for the other parts, so
  // no backtracking is needed.
  while ((star = pattern.find(kAnyMany)) != std::string_view::npos) {
    const std::string_view part = pattern.substr(0, star);
    if (!part.empty()) {
      if (text.size() < part.size()) return false;
      const auto* found =
          static_cast<const char*>(memmem(text.data(), text.size(), part.data(), part.size()));
      if (!found) return false;
      text.remove_prefix(size_t(found - text.data()) + part.size());
    }
    pattern.remove_prefix(star + 1);
  }
  return text.ends_with(pattern);
}

// -- with '?': code points -----------------------------------------------------------------------

constexpr char32_t kManyPoint = 0xffff'ffff, kOnePoint = 0xffff'fffe;
// a byte that is not UTF-8 is treated as a separate character
constexpr char32_t kBadByte = 0x11'0000;

// Returns the length of the well-formed sequence at the start of `text`, or 1.
size_t sequence_length(std::string_view text) {
  const auto lead = uint8_t(text[0]);
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  if (lead > 0xf4 || length > text.size()) return 1;
  for (size_t i = 1; i < length; ++i)
    if ((uint8_t(text[i]) & 0xc0) != 0x80) return 1;
  return length;
}

std::u32string to_points(std::string_view text, bool is_pattern) {
  std::u32string points;
  points.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const auto lead = uint8_t(text[0]);
    char32_t point = lead < 0x80 ? lead : kBadByte + lead;
    if (is_pattern && text[0] == kAnyMany) point = kManyPoint;
    if (is_pattern && text[0] == kAnyOne) point = kOnePoint;
    if (length > 1) {
      point = lead & (0xffu >> (length + 1));
      for (size_t i = 1; i < length; ++i) point = (point << 6) | (uint8_t(text[i]) & 0x3f);
    }
    points.push_back(point);
    text.remove_prefix(length);
  }
  return points;
}

bool same(std::u32string_view part, std::u32string_view text) {
  for (size_t i = 0; i < part.size(); ++i)
    if (part[i] != kOnePoint && part[i] != text[i]) return false;
  return true;
}

// Returns the end of the first occurrence of `part` in `text`. The algorithm is Shift-And
// (Baeza-Yates and Gonnet), with one bit for each character of the part, 64 in one step.
std::optional<size_t> end_of_first(std::u32string_view part, std::u32string_view text) {
  if (part.empty()) return 0;
  const size_t words = (part.size() + 63) / 64;
  std::vector<uint64_t> any(words), state(words);
  std::unordered_map<char32_t, std::vector<uint64_t>> masks;
  for (size_t i = 0; i < part.size(); ++i)
    if (part[i] == kOnePoint) any[i / 64] |= uint64_t{1} << (i % 64);
  for (size_t i = 0; i < part.size(); ++i)
    if (part[i] != kOnePoint)
      masks.try_emplace(part[i], any).first->second[i / 64] |= uint64_t{1} << (i % 64);
  for (size_t at = 0; at < text.size(); ++at) {
    const auto found = masks.find(text[at]);
    const std::vector<uint64_t>& mask = found == masks.end() ? any : found->second;
    uint64_t carry = 1;
    for (size_t word = 0; word < words; ++word) {
      const uint64_t out = state[word] >> 63;
      state[word] = ((state[word] << 1) | carry) & mask[word];
      carry = out;
    }
    if (state[words - 1] >> ((part.size() - 1) % 64) & 1) return at + 1;
  }
  return std::nullopt;
}

bool match_points(std::u32string_view pattern, std::u32string_view text) {
  size_t star = pattern.find(kManyPoint);
  if (star == std::u32string_view::npos)
    return pattern.size() == text.size() && same(pattern, text);
  if (text.size() < star || !same(pattern.substr(0, star), text)) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  while ((star = pattern.find(kManyPoint)) != std::u32string_view::npos) {
    const auto end = end_of_first(pattern.substr(0, star), text);
    if (!end) return false;
    text.remove_prefix(*end);
    pattern.remove_prefix(star + 1);
  }
  return text.size() >= pattern.size() && same(pattern, text.substr(text.size() - pattern.size()));
}

// Returns the six components of an ARN; the last may contain colons.
std::optional<std::vector<std::string_view>> components(std::string_view text) {
  std::vector<std::string_view> parts;
  for (int i = 0; i < 5; ++i) {
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    parts.push_back(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.find(kAnyOne) == std::string_view::npos) return match_many(pattern, text);
  return match_points(to_points(pattern, true), to_points(text, false));
}

bool matches_arn(std::string_view pattern, std::string_view text) {
  if (pattern.size() == 1 && pattern[0] == kAnyMany) return true;
  const auto patterns = components(pattern), parts = components(text);
  if (!patterns || !parts) return false;
  for (size_t i = 0; i < parts->size(); ++i)
    if (!matches((*patterns)[i], (*parts)[i])) return false;
  return true;
}

Result<Pattern> Pattern::compile(std::string_view text, PatternOptions options) {
  Pattern pattern;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (options.variables && text.substr(at).starts_with("${")) {
      at = TRY(pattern.compile_variable(text, at + 2));
      continue;
    }
    if (options.wildcards && c == '*') {
      if (pattern.text_.empty() || pattern.text_.back() != kAnyMany) pattern.text_ += kAnyMany;
    } else if (options.wildcards && c == '?') {
      pattern.text_ += kAnyOne;
    } else {
      pattern.text_ += options.lower_case && c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    }
    ++at;
  }
  pattern.find_shape();
  return pattern;
}

// Compiles the variable whose name begins at `at`, after "${". Returns the offset after its "}".
Result<size_t> Pattern::compile_variable(std::string_view text, size_t at) {
  const Error bad = invalid("Invalid policy variable in policy.");
  if (text.size() >= at + 2 && text[at + 1] == '}' && std::strchr("*?$", text[at])) {
    text_ += text[at];
    return at + 2;
  }
  const size_t end = text.find_first_of(",}", at);
  if (end == std::string_view::npos) return bad;
  Variable variable{.at = text_.size(), .key = std::string(trim(text.substr(at, end - at)))};
  if (variable.key.empty()) return bad;
  variable.lower_key = to_lower(variable.key);
  at = end;
  if (text[at] == ',') {
    const size_t open = text.find_first_not_of(' ', at + 1);
    if (open == std::string_view::npos || text[open] != '\'') return bad;
    const size_t close = text.find('\'', open + 1);
    if (close == std::string_view::npos) return bad;
    variable.fallback = std::string(text.substr(open + 1, close - open - 1));
    at = text.find_first_not_of(' ', close + 1);
    if (at == std::string_view::npos || text[at] != '}') return bad;
  }
  variables_.push_back(std::move(variable));
  return at + 1;
}

void Pattern::find_shape() {
  const size_t many = text_.find(kAnyMany), one = text_.find(kAnyOne);
  if (!variables_.empty() || one != std::string::npos) return;
  if (many == std::string::npos)
    shape_ = Shape::literal;
  else if (many + 1 == text_.size())
    shape_ = many == 0 ? Shape::any : Shape::prefix;
}

bool Pattern::match_text(std::string_view text) const {
  switch (shape_) {
    case Shape::any:
      return true;
    case Shape::literal:
      return text == text_;
    case Shape::prefix:
      return text.starts_with(std::string_view(text_).substr(0, text_.size() - 1));
    case Shape::general:
      break;
  }
  return matches(text_, text);
}

std::optional<bool> Pattern::match(std::string_view text, const ConditionValues& values) const {
  if (variables_.empty()) return match_text(text);
  const auto expanded = expand(values);
  if (!expanded) return std::nullopt;
  return matches(*expanded, text);
}

std::optional<std::string> Pattern::expand(const ConditionValues& values) const {
  std::string expanded;
  size_t at = 0;
  for (const Variable& variable : variables_) {
    expanded.append(text_, at, variable.at - at);
    at = variable.at;
    const auto found = values.find_lower(variable.lower_key);
    if (found.size() > 1 || (found.empty() && !variable.fallback)) return std::nullopt;
    const std::string& value = found.empty() ? *variable.fallback : found[0];
    // These bytes, which are not UTF-8, would become wildcards.
    if (value.find_first_of("\xfe\xff") != std::string::npos) return std::nullopt;
    expanded += value;
  }
  expanded.append(text_, at);
  return expanded;
}

void Pattern::add_keys(std::vector<std::string>& keys) const {
  for (const Variable& variable : variables_) keys.push_back(variable.key);
}

}  // namespace trainyard::policy
