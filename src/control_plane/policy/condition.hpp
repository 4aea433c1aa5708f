// Evaluates one condition of a statement: an operator, a condition key and the values to compare
// with.
//
// A condition with several values holds when one of them matches; a negated one when none does.
// Without the key in the request a condition is false, a negated one is true, and with IfExists
// either is true. ForAllValues needs each of the request's values to hold and is true without any;
// ForAnyValue needs one of them. An operator without such a prefix takes a key with several values
// as ForAnyValue, negated as a whole.
//
// A value whose variable has no value equals nothing and is like nothing. Where that would make a
// negated condition of an Allow statement true, the condition is false: a missing tag never widens
// what is allowed.
//
// Threads: immutable after compiling. Errors:  invalid, with AWS's text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "policy/condition_values.hpp"
#include "policy/ip_range.hpp"
#include "policy/pattern.hpp"

namespace trainyard::policy {

enum class Comparison {
  string_equals,
  string_equals_ignore_case,
  string_like,
  numeric_equals,
  numeric_less,
  numeric_less_equals,
  numeric_greater,
  numeric_greater_equals,
  date_equals,
  date_less,
  date_less_equals,
  date_greater,
  date_greater_equals,
  boolean,
  binary_equals,
  ip_address,
  arn_like,  // ArnEquals is the same
  null,
};

enum class Quantifier { none, any_value, all_values };

struct Operator {
  Comparison comparison = Comparison::string_equals;
  bool negated = false;
  bool if_exists = false;
  Quantifier quantifier = Quantifier::none;
};

// "ForAnyValue:StringNotLikeIfExists". Errors: "Invalid Condition type : NAME".
Result<Operator> parse_operator(std::string_view name);

class Condition {
 public:
  // values: text, number, boolean, or an array of such. variables: the document is of version
  // 2012-10-17.
  static Result<Condition> compile(std::string_view operator_name, std::string_view key,
                                   const Json& values, bool variables);

  // True if the condition holds in a statement that denies or allows.
  bool holds(const ConditionValues& values, bool denies) const;
  void add_keys(std::vector<std::string>& keys) const;
  // True if it holds only for fixed callers or networks: a positive operator, a key of the caller
  // or its network (aws:SourceIp, aws:PrincipalArn), and values without wildcards and
  // variables. A range of addresses is at most as wide as S3 accepts, /8 or /32 of IPv6.
  bool limits_callers() const;

 private:
  // The form in which a value is compared: text with wildcards and variables, a number or an
  // instant in seconds, a boolean, bytes, a range.
  using Value = std::variant<Pattern, double, bool, std::string, IpRange>;
  enum class Match { no, unknown, yes };  // unknown: a variable has no value

  static Result<Value> compile_value(Comparison comparison, const Json& value, bool variables);
  Match match_any(const std::string& text, const ConditionValues& values) const;
  Match match_one(const Value& value, std::string_view text, const ConditionValues& values) const;
  bool settle(Match match, bool denies) const;

  Operator operator_;
  std::string key_, lower_key_;
  std::vector<Value> values_;
};

}  // namespace trainyard::policy
