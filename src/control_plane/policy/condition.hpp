// A Condition is one condition of a statement: an operator, a condition key and the values with
// which the key is compared.
//
// A condition with several values is true if one of them matches, and a negated condition if none
// matches. If the request does not have the key, a condition is false, a negated condition is true,
// and both are true with IfExists. ForAllValues requires that each value of the request meets the
// condition, and is true without values; ForAnyValue requires that one value does. An operator
// without such a prefix treats a key with several values like ForAnyValue; a negated operator is
// the negation of that result.
//
// A value that contains a variable without a value matches nothing. If that would make a negated
// condition of an Allow statement true, the condition is false, so that a missing tag never allows
// more.
//
// Threads: immutable after compiling. Errors: invalid, with AWS's text.
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
  arn_like,  // ArnEquals has the same meaning
  null,
};

enum class Quantifier { none, any_value, all_values };

struct Operator {
  Comparison comparison = Comparison::string_equals;
  bool negated = false;
  bool if_exists = false;
  Quantifier quantifier = Quantifier::none;
};

// Parses a name such as "ForAnyValue:StringNotLikeIfExists". Errors: "Invalid Condition type :
// NAME".
Result<Operator> parse_operator(std::string_view name);

class Condition {
 public:
  // values: a text, number or boolean, or an array of these. variables: the version of the document
  // is 2012-10-17.
  static Result<Condition> compile(std::string_view operator_name, std::string_view key,
                                   const Json& values, bool variables);

  // Returns whether the condition is true. `denies`: the effect of its statement.
  bool holds(const ConditionValues& values, bool denies) const;
  void add_keys(std::vector<std::string>& keys) const;
  // Returns whether the condition can be true only for fixed callers or networks: it has a positive
  // operator, a key of the caller or its network (aws:SourceIp, aws:PrincipalArn), and values
  // without wildcards and variables. As in S3, a range of addresses must not be wider than /8, or
  // /32 for IPv6.
  bool limits_callers() const;

 private:
  // A value in the form in which it is compared: text with wildcards and variables, a number or an
  // instant in seconds, a boolean, bytes, a range.
  using Value = std::variant<Pattern, double, bool, std::string, IpRange>;
  enum class Match { no, unknown, yes };  // unknown: a variable has no value

  static Result<Value> compile_value(Comparison comparison, const Json& value, bool variables);
  Match match_any(const std::string& text, const ConditionValues& values) const;
  Match match_one(const Value& value, std::string_view text, const ConditionValues& values) const;
  bool resolve_unknown(Match match, bool denies) const;

  Operator operator_;
  std::string key_, lower_key_;
  std::vector<Value> values_;
};

}  // namespace trainyard::policy
