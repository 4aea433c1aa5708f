// A Value is what a field or an expression of a query has: nothing, a text, a number or an instant.
//
// Fields of log events are texts. An operation on numbers reads a text as a number if it is one, so
// "12" and 12 are equal. A condition is the number 1 or 0, as on AWS.
//
// Threads: plain values and pure functions. Errors: none; what cannot be computed is nothing.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace trainyard::insights {

class Value {
 public:
  enum class Kind : uint8_t { nothing, text, number, instant };

  Value() = default;
  static Value of_text(std::string text) {
    Value value;
    value.kind_ = Kind::text;
    value.text_ = std::move(text);
    return value;
  }
  static Value of_number(double number);  // a number that is not finite is nothing
  static Value of_instant(double milliseconds);
  static Value of_condition(bool holds) { return of_number(holds ? 1 : 0); }

  Kind kind() const { return kind_; }
  bool nothing() const { return kind_ == Kind::nothing; }
  // The number, the milliseconds of an instant, or that of a text which is a number.
  std::optional<double> number() const;
  // As results show it: "2026-11-20 09:45:00.123", "0.25"; "" for nothing.
  std::string text() const;
  size_t bytes() const { return text_.size(); }  // on top of the object's own
  // True unless it is nothing, 0, "", "0" or "false".
  bool holds() const;

 private:
  Kind kind_ = Kind::nothing;
  double number_ = 0;
  std::string text_;
};

// Orders two values as `sort` does: nothing, then numbers, then texts.
std::weak_ordering order_of(const Value& a, const Value& b);
// Returns nullopt if one of them is nothing.
std::optional<std::weak_ordering> compare(const Value& a, const Value& b);

// "12", "0.25", "1234567.125": at most 4 digits after the point, without zeros at the end.
std::string format_number(double number);

}  // namespace trainyard::insights
