#include "insights/value.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/text.hpp"
#include "base/time.hpp"

namespace trainyard::insights {
namespace {

constexpr double kExactMax = 9007199254740992.0;  // 2^53: larger doubles have gaps above 1
// The range of instants that have a date of four digits.
constexpr double kInstantMax = 253402300799999.0;
constexpr size_t kNumberBytesMax = 64;  // a longer text does not count as a number

std::optional<double> number_in(const std::string& text) {
  if (text.empty() || text.size() > kNumberBytesMax) return {};
  const char first = text.front();
  if ((first < '0' || first > '9') && first != '-' && first != '+' && first != '.') return {};
  const auto number = parse_double(text);
  if (!number || !std::isfinite(*number)) return {};
  return *number;
}

}  // namespace

Value Value::of_number(double number) {
  Value value;
  if (!std::isfinite(number)) return value;
  value.kind_ = Kind::number;
  value.number_ = number;
  return value;
}

Value Value::of_instant(double milliseconds) {
  Value value;
  if (!std::isfinite(milliseconds) || milliseconds < 0 || milliseconds > kInstantMax) return value;
  value.kind_ = Kind::instant;
  value.number_ = std::floor(milliseconds);
  return value;
}

std::optional<double> Value::number() const {
  if (kind_ == Kind::number || kind_ == Kind::instant) return number_;
  if (kind_ == Kind::text) return number_in(text_);
  return {};
}

std::string Value::text() const {
  switch (kind_) {
    case Kind::nothing:
      return "";
    case Kind::text:
      return text_;
    case Kind::number:
      return format_number(number_);
    case Kind::instant:
      break;
  }
  std::string text = to_iso8601(from_milliseconds(int64_t(number_)));  // 2026-11-20T09:45:00.123Z
  text[10] = ' ';
  text.pop_back();
  return text;
}

bool Value::holds() const {
  if (kind_ == Kind::nothing) return false;
  if (kind_ == Kind::text) return !text_.empty() && text_ != "0" && text_ != "false";
  return number_ != 0;
}

std::weak_ordering order_of(const Value& a, const Value& b) {
  if (a.nothing() || b.nothing()) return !a.nothing() <=> !b.nothing();
  const auto left = a.number(), right = b.number();
  if (left && right)
    return *left < *right   ? std::weak_ordering::less
           : *left > *right ? std::weak_ordering::greater
                            : std::weak_ordering::equivalent;
  if (left || right) return !left <=> !right;  // numbers before texts
  return a.text().compare(b.text()) <=> 0;
}

std::optional<std::weak_ordering> compare(const Value& a, const Value& b) {
  if (a.nothing() || b.nothing()) return {};
  const auto left = a.number(), right = b.number();
  if (left && right) return order_of(a, b);
  return a.text().compare(b.text()) <=> 0;
}

std::string format_number(double number) {
  char text[64];
  if (number == std::floor(number) && std::fabs(number) < kExactMax) {
    std::snprintf(text, sizeof text, "%.0f", number == 0 ? 0.0 : number);
    return text;
  }
  if (std::fabs(number) >= kExactMax || std::fabs(number) < 0.0001) {
    std::snprintf(text, sizeof text, "%.6g", number);
    return text;
  }
  std::snprintf(text, sizeof text, "%.4f", number);
  std::string trimmed = text;
  while (trimmed.ends_with('0')) trimmed.pop_back();
  if (trimmed.ends_with('.')) trimmed.pop_back();
  return trimmed;
}

}  // namespace trainyard::insights
