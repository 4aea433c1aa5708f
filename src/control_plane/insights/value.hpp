// A Value is the value of a field or an expression in a query: nothing, a text, a number or an
// instant.
//
// Fields of log events are texts. Operations on numbers convert texts that are numbers, so "12" and
// 12 are equal. The value of a condition is the number 1 or 0, as on AWS.
//
// Threads: plain values and pure functions. Errors: none; a result that cannot be computed is
// nothing.
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
  // Returns the number, the milliseconds of an instant, or the number in a text; nullopt for other
  // values.
  std::optional<double> number() const;
  // Returns the text in results: "2026-11-20 09:45:00.123", "0.25"; "" for nothing.
  std::string text() const;
  size_t bytes() const { return text_.size(); }  // in addition to the size of the object
  // Returns false for nothing, 0, "", "0" and "false", and true for other values.
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

// Formats a number with at most 4 digits after the point, without zeros at the end: "12", "0.25",
// "1234567.125".
std::string format_number(double number);

}  // namespace trainyard::insights
