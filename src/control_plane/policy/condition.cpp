#include "policy/condition.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "base/time.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {
namespace {

struct Named {
  std::string_view name;
  Comparison comparison;
  bool negated = false;
};

constexpr Named kOperators[] = {
    {"StringEquals", Comparison::string_equals},
    {"StringNotEquals", Comparison::string_equals, true},
    {"StringEqualsIgnoreCase", Comparison::string_equals_ignore_case},
    {"StringNotEqualsIgnoreCase", Comparison::string_equals_ignore_case, true},
    {"StringLike", Comparison::string_like},
    {"StringNotLike", Comparison::string_like, true},
    {"NumericEquals", Comparison::numeric_equals},
    {"NumericNotEquals", Comparison::numeric_equals, true},
    {"NumericLessThan", Comparison::numeric_less},
    {"NumericLessThanEquals", Comparison::numeric_less_equals},
    {"NumericGreaterThan", Comparison::numeric_greater},
    {"NumericGreaterThanEquals", Comparison::numeric_greater_equals},
    {"DateEquals", Comparison::date_equals},
    {"DateNotEquals", Comparison::date_equals, true},
    {"DateLessThan", Comparison::date_less},
    {"DateLessThanEquals", Comparison::date_less_equals},
    {"DateGreaterThan", Comparison::date_greater},
    {"DateGreaterThanEquals", Comparison::date_greater_equals},
    {"Bool", Comparison::boolean},
    {"BinaryEquals", Comparison::binary_equals},
    {"IpAddress", Comparison::ip_address},
    {"NotIpAddress", Comparison::ip_address, true},
    {"ArnEquals", Comparison::arn_like},
    {"ArnLike", Comparison::arn_like},
    {"ArnNotEquals", Comparison::arn_like, true},
    {"ArnNotLike", Comparison::arn_like, true},
    {"Null", Comparison::null},
};

Result<double> parse_number(std::string_view text) {
  const double number = TRY(parse_double(trim(text)));
  if (!std::isfinite(number)) return invalid("not a finite number");
  return number;
}

// Returns seconds since 1970. Accepts ISO 8601 in the forms of W3C's note (a year, a month, a day,
// minutes, seconds with fraction) and seconds since 1970; four digits are a year.
Result<double> parse_date(std::string_view text) {
  std::string full(trim(text));
  if (full.size() != 4 || full.find_first_not_of("0123456789") != std::string::npos)
    if (const auto seconds = parse_number(full)) return *seconds;
  if (full.size() == 4) full += "-01";
  if (full.size() == 7) full += "-01";
  if (full.size() == 10) full += "T00:00:00Z";
  if (full.size() > 16 && full[13] == ':' && full[16] != ':') full.insert(16, ":00");
  return to_seconds(TRY(parse_iso8601(full)));
}

std::optional<bool> parse_bool(std::string_view text) {
  if (equals_ignoring_case(text, "true")) return true;
  if (equals_ignoring_case(text, "false")) return false;
  return std::nullopt;
}

bool compare(Comparison comparison, double found, double wanted) {
  switch (comparison) {
    case Comparison::numeric_equals:
    case Comparison::date_equals:
      return found == wanted;
    case Comparison::numeric_less:
    case Comparison::date_less:
      return found < wanted;
    case Comparison::numeric_less_equals:
    case Comparison::date_less_equals:
      return found <= wanted;
    case Comparison::numeric_greater:
    case Comparison::date_greater:
      return found > wanted;
    case Comparison::numeric_greater_equals:
    case Comparison::date_greater_equals:
      return found >= wanted;
    default:
      return false;
  }
}

bool is_date(Comparison comparison) {
  return comparison >= Comparison::date_equals && comparison <= Comparison::date_greater_equals;
}

std::optional<std::string> text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return dump(value);
  return std::nullopt;
}

// Keys of the caller and its network, in lower case.
constexpr std::string_view kSourceIp = "aws:sourceip";
constexpr std::string_view kCallerKeys[] = {
    kSourceIp,          "aws:sourcearn",        "aws:sourcevpc",
    "aws:sourcevpce",   "aws:sourceaccount",    "aws:principalorgid",
    "aws:principalarn", "aws:principalaccount", "aws:userid"};

// S3 treats wider ranges as public.
constexpr unsigned kPrefixBitsMin = 8, kPrefixBitsMinV6 = 32;

bool is_fixed(const Pattern& pattern) {
  return !pattern.has_variables() && pattern.text().find(kAnyMany) == std::string::npos &&
         pattern.text().find(kAnyOne) == std::string::npos;
}

bool is_narrow(const IpRange& range) {
  return range.prefix_bits >= (range.first.v6 ? kPrefixBitsMinV6 : kPrefixBitsMin);
}

}  // namespace

Result<Operator> parse_operator(std::string_view name) {
  Operator parsed;
  std::string_view rest = name;
  if (rest.starts_with("ForAnyValue:")) parsed.quantifier = Quantifier::any_value;
  if (rest.starts_with("ForAllValues:")) parsed.quantifier = Quantifier::all_values;
  if (parsed.quantifier != Quantifier::none) rest.remove_prefix(rest.find(':') + 1);
  if (rest.ends_with("IfExists")) {
    parsed.if_exists = true;
    rest.remove_suffix(std::string_view("IfExists").size());
  }
  for (const Named& one : kOperators) {
    if (one.name != rest) continue;
    parsed.comparison = one.comparison;
    parsed.negated = one.negated;
    const bool plain = !parsed.if_exists && parsed.quantifier == Quantifier::none;
    if (one.comparison == Comparison::null && !plain) break;
    return parsed;
  }
  return invalid("Invalid Condition type : " + shorten(name, 80));
}

Result<Condition> Condition::compile(std::string_view operator_name, std::string_view key,
                                     const Json& values, bool variables) {
  Condition condition;
  condition.operator_ = TRY(parse_operator(operator_name));
  if (key.find(':') == std::string_view::npos || key.front() == ':')
    return invalid("Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.");
  condition.key_ = key;
  condition.lower_key_ = to_lower(key);
  const size_t count = values.is_array() ? values.size() : 1;
  if (count > kValuesMax)
    return invalid("Policy condition " + shorten(key, 80) + " has more than " +
                   std::to_string(kValuesMax) + " values.");
  for (size_t i = 0; i < count; ++i)
    condition.values_.push_back(TRY(compile_value(
        condition.operator_.comparison, values.is_array() ? values[i] : values, variables)));
  return condition;
}

Result<Condition::Value> Condition::compile_value(Comparison comparison, const Json& value,
                                                  bool variables) {
  const auto text = text_of(value);
  if (!text) return invalid("Syntax errors in policy.");
  const auto bad = [&](std::string_view type) {
    return invalid("The value '" + shorten(*text, 80) + "' of a condition is not " +
                   std::string(type) + ".");
  };
  switch (comparison) {
    case Comparison::string_equals:
    case Comparison::string_equals_ignore_case:
    case Comparison::string_like:
    case Comparison::arn_like: {
      const bool wildcards =
          comparison == Comparison::string_like || comparison == Comparison::arn_like;
      return Value(TRY(Pattern::compile(*text, {.wildcards = wildcards, .variables = variables})));
    }
    case Comparison::null:
    case Comparison::boolean: {
      const auto parsed = parse_bool(*text);
      if (!parsed) return bad("true or false");
      return Value(*parsed);
    }
    case Comparison::binary_equals: {
      auto bytes = from_base64(*text);
      if (!bytes) return bad("base64");
      return Value(std::move(*bytes));
    }
    case Comparison::ip_address: {
      const auto range = parse_ip_range(*text);
      if (!range) return bad("an IP address or CIDR range");
      return Value(*range);
    }
    default:
      break;
  }
  const auto number = is_date(comparison) ? parse_date(*text) : parse_number(*text);
  if (!number) return bad(is_date(comparison) ? "a date" : "a number");
  return Value(*number);
}

bool Condition::holds(const ConditionValues& values, bool denies) const {
  const auto found = values.find_lower(lower_key_);
  if (operator_.comparison == Comparison::null) {
    for (const Value& value : values_)
      if (std::get<bool>(value) == found.empty()) return true;
    return false;
  }
  if (found.empty()) {
    if (operator_.if_exists || operator_.quantifier == Quantifier::all_values) return true;
    return operator_.quantifier == Quantifier::none && operator_.negated;
  }
  if (operator_.quantifier == Quantifier::none) {
    Match match = Match::no;
    for (const std::string& text : found) match = std::max(match, match_any(text, values));
    return resolve_unknown(match, denies);
  }
  const bool all = operator_.quantifier == Quantifier::all_values;
  for (const std::string& text : found)
    if (resolve_unknown(match_any(text, values), denies) != all) return !all;
  return all;
}

bool Condition::resolve_unknown(Match match, bool denies) const {
  if (!operator_.negated) return match == Match::yes;
  return match == Match::no || (match == Match::unknown && denies);
}

Condition::Match Condition::match_any(const std::string& text,
                                      const ConditionValues& values) const {
  Match match = Match::no;
  for (const Value& value : values_) {
    match = std::max(match, match_one(value, text, values));
    if (match == Match::yes) break;
  }
  return match;
}

Condition::Match Condition::match_one(const Value& value, std::string_view text,
                                      const ConditionValues& values) const {
  const auto found = [](bool matched) { return matched ? Match::yes : Match::no; };
  switch (operator_.comparison) {
    case Comparison::string_equals:
    case Comparison::string_like: {
      const auto matched = std::get<Pattern>(value).match(text, values);
      return matched ? found(*matched) : Match::unknown;
    }
    case Comparison::string_equals_ignore_case:
    case Comparison::arn_like: {
      const auto expanded = std::get<Pattern>(value).expand(values);
      if (!expanded) return Match::unknown;
      return found(operator_.comparison == Comparison::arn_like
                       ? matches_arn(*expanded, text)
                       : equals_ignoring_case(*expanded, text));
    }
    case Comparison::boolean:
      return found(parse_bool(text) == std::get<bool>(value));
    case Comparison::binary_equals:
      return found(text == std::get<std::string>(value));
    case Comparison::ip_address: {
      const auto address = parse_ip_address(text);
      return found(address && std::get<IpRange>(value).contains(*address));
    }
    case Comparison::null:
      return Match::no;
    default:
      break;
  }
  const auto number = is_date(operator_.comparison) ? parse_date(text) : parse_number(text);
  return found(number && compare(operator_.comparison, *number, std::get<double>(value)));
}

bool Condition::limits_callers() const {
  if (operator_.negated || operator_.if_exists || operator_.quantifier == Quantifier::all_values)
    return false;
  if (std::ranges::find(kCallerKeys, lower_key_) == std::ranges::end(kCallerKeys)) return false;
  return std::ranges::all_of(values_, [&](const Value& value) {
    if (const auto* pattern = std::get_if<Pattern>(&value)) return is_fixed(*pattern);
    const auto* range = std::get_if<IpRange>(&value);
    return range && lower_key_ == kSourceIp && is_narrow(*range);
  });
}

void Condition::add_keys(std::vector<std::string>& keys) const {
  keys.push_back(key_);
  for (const Value& value : values_)
    if (const auto* pattern = std::get_if<Pattern>(&value)) pattern->add_keys(keys);
}

}  // namespace trainyard::policy
