#include "policy/condition.hpp"

#include <gtest/gtest.h>

namespace trainyard::policy {
namespace {

using Texts = std::vector<std::string>;

struct Case {
  const char* name;    // the operator
  const char* wanted;  // JSON
  Texts found;         // empty: the request does not have the key
  bool holds;
};

bool holds(const Case& one, bool denies = false) {
  const auto condition = Condition::compile(one.name, "aws:Key", *parse_json(one.wanted), true);
  if (!condition) return ADD_FAILURE() << one.name << ": " << condition.error().message, false;
  ConditionValues values;
  values.set("AWS:key", one.found);
  values.set("aws:username", "ana");
  return condition->holds(values, denies);
}

void check(const std::vector<Case>& table) {
  for (const Case& one : table) {
    std::string found;
    for (const std::string& value : one.found) found += "'" + value + "' ";
    EXPECT_EQ(holds(one), one.holds) << one.name << " " << one.wanted << " on " << found;
  }
}

TEST(Condition, ComparesStrings) {
  check({
      {"StringEquals", R"("a")", {"a"}, true},
      {"StringEquals", R"("a")", {"A"}, false},
      {"StringEquals", R"("a*")", {"ab"}, false},
      {"StringEquals", R"(["a", "b"])", {"b"}, true},
      {"StringEquals", R"("${aws:username}")", {"ana"}, true},
      {"StringNotEquals", R"(["a", "b"])", {"b"}, false},
      {"StringNotEquals", R"(["a", "b"])", {"c"}, true},
      {"StringEqualsIgnoreCase", R"("Team-${aws:username}")", {"tEAM-ANA"}, true},
      {"StringNotEqualsIgnoreCase", R"("a")", {"A"}, false},
      {"StringLike", R"("home/${aws:username}/*")", {"home/ana/x"}, true},
      {"StringLike", R"("a?c")", {"abc"}, true},
      {"StringLike", R"("A*")", {"abc"}, false},
      {"StringNotLike", R"(["a*", "b*"])", {"cat"}, true},
      {"StringNotLike", R"(["a*", "b*"])", {"bat"}, false},
      {"StringEquals", "true", {"true"}, true},
      {"StringEquals", "7", {"7"}, true},
      {"StringEquals", "[]", {"a"}, false},
  });
}

TEST(Condition, EvaluatesMissingKeys) {
  check({
      {"StringEquals", R"("a")", {}, false},
      {"StringLike", R"("*")", {}, false},
      {"StringNotEquals", R"("a")", {}, true},
      {"StringNotLike", R"("*")", {}, true},
      {"NotIpAddress", R"("0.0.0.0/0")", {}, true},
      {"ArnNotLike", R"("*")", {}, true},
      {"NumericNotEquals", "1", {}, true},
      {"NumericLessThan", "1", {}, false},
      {"DateGreaterThan", R"("2024-01-01")", {}, false},
      {"Bool", R"("false")", {}, false},
      {"StringEqualsIfExists", R"("a")", {}, true},
      {"StringEqualsIfExists", R"("a")", {"b"}, false},
      {"BoolIfExists", R"("false")", {}, true},
      {"ForAnyValue:StringEqualsIfExists", R"("a")", {}, true},
      {"Null", R"("true")", {}, true},
      {"Null", R"("false")", {}, false},
      {"Null", "false", {"x"}, true},
      {"Null", "true", {"x"}, false},
      {"Null", R"(["true", "false"])", {"x"}, true},
      {"StringEquals", R"("")", {""}, true},
      {"Null", R"("false")", {""}, true},
  });
}

TEST(Condition, ComparesNumbersDatesAndBooleans) {
  check({
      {"NumericEquals", R"("10")", {"10.0"}, true},
      {"NumericNotEquals", "10", {"11"}, true},
      {"NumericLessThan", "10", {"9.99"}, true},
      {"NumericLessThan", "10", {"10"}, false},
      {"NumericLessThanEquals", "10", {"10"}, true},
      {"NumericGreaterThan", "-2", {"-1"}, true},
      {"NumericGreaterThanEquals", R"(["100", "5"])", {"7"}, true},
      {"NumericEquals", "10", {"ten"}, false},
      {"NumericLessThan", "10", {"nan"}, false},
      {"NumericLessThan", "10", {"-inf"}, false},
      {"DateLessThan", R"("2024-06-30T12:00:00Z")", {"2024-06-30T11:59:59Z"}, true},
      {"DateGreaterThan", R"("2024-06-30")", {"2024-06-30T00:00:01Z"}, true},
      {"DateEquals", R"("2024")", {"2024-01-01T00:00:00Z"}, true},
      {"DateEquals", R"("2024-02")", {"2024-02-01T00:00:00+00:00"}, true},
      {"DateEquals", R"("1704067200")", {"2024-01-01T00:00:00Z"}, true},
      {"DateEquals", "1704067200", {"2024-01-01T01:00:00+01:00"}, true},
      {"DateEquals", R"("2024-01-01T00:00Z")", {"2024-01-01T00:00:00Z"}, true},
      {"DateNotEquals", R"("2024-01-01")", {"2024-01-02"}, true},
      {"DateLessThanEquals", R"("2024-01-01")", {"soon"}, false},
      {"Bool", "true", {"true"}, true},
      {"Bool", R"("True")", {"tRUE"}, true},
      {"Bool", "true", {"false"}, false},
      {"Bool", R"("false")", {"no"}, false},
      {"BinaryEquals", R"("AAEC")", {std::string("\0\1\2", 3)}, true},
      {"BinaryEquals", R"("AAEC")", {"AAEC"}, false},
  });
}

TEST(Condition, ComparesAddressesAndArns) {
  check({
      {"IpAddress", R"(["192.0.2.0/24", "2001:db8::/32"])", {"192.0.2.3"}, true},
      {"IpAddress", R"(["192.0.2.0/24", "2001:db8::/32"])", {"2001:db8::3"}, true},
      {"IpAddress", R"("192.0.2.0/24")", {"198.51.100.1"}, false},
      {"IpAddress", R"("0.0.0.0/0")", {"sagemaker.amazonaws.com"}, false},
      {"NotIpAddress", R"(["192.0.2.0/24", "203.0.113.0/24"])", {"203.0.113.9"}, false},
      {"NotIpAddress", R"(["192.0.2.0/24", "203.0.113.0/24"])", {"198.51.100.1"}, true},
      {"ArnEquals",
       R"("arn:aws:sns:*:111122223333:t*")",
       {"arn:aws:sns:eu-west-1:111122223333:topic"},
       true},
      {"ArnLike", R"("arn:aws:sns:*:t*")", {"arn:aws:sns:eu-west-1:111122223333:topic"}, false},
      {"ArnLike",
       R"("arn:aws:iam::*:user/${aws:username}")",
       {"arn:aws:iam::111122223333:user/ana"},
       true},
      {"ArnNotEquals", R"("arn:aws:s3:::a")", {"arn:aws:s3:::b"}, true},
      {"ArnNotLike", R"("arn:aws:s3:::*")", {"arn:aws:s3:::b"}, false},
  });
}

TEST(Condition, ComparesKeysWithSeveralValues) {
  check({
      {"ForAllValues:StringEquals", R"(["a", "b"])", {"a", "b"}, true},
      {"ForAllValues:StringEquals", R"(["a", "b"])", {"a", "c"}, false},
      {"ForAllValues:StringEquals", R"("a")", {}, true},
      {"ForAnyValue:StringEquals", R"(["a", "b"])", {"c", "b"}, true},
      {"ForAnyValue:StringEquals", R"(["a", "b"])", {"c", "d"}, false},
      {"ForAnyValue:StringEquals", R"("a")", {}, false},
      {"ForAllValues:StringNotEquals", R"(["a", "b"])", {"c", "d"}, true},
      {"ForAllValues:StringNotEquals", R"(["a", "b"])", {"c", "a"}, false},
      {"ForAnyValue:StringNotEquals", R"(["a", "b"])", {"c", "a"}, true},
      {"ForAnyValue:StringNotEquals", R"(["a", "b"])", {"b", "a"}, false},
      {"ForAnyValue:StringNotEquals", R"("a")", {}, false},
      {"ForAnyValue:StringLike", R"("team-*")", {"red", "team-red"}, true},
      {"ForAllValues:NumericLessThan", "10", {"1", "11"}, false},
      // without a quantifier, one matching value is enough
      {"StringEquals", R"("a")", {"b", "a"}, true},
      {"StringNotEquals", R"("a")", {"b", "a"}, false},
  });
}

// A value with a missing variable matches nothing: an Allow does not allow more, and a Deny does
// not deny less.
TEST(Condition, TreatsVariablesWithoutAValueStrictly) {
  const Case equals{"StringEquals", R"("${aws:PrincipalTag/Team}")", {""}, false};
  const Case differs{"StringNotEquals", R"("${aws:PrincipalTag/Team}")", {"red"}, false};
  EXPECT_FALSE(holds(equals, false));
  EXPECT_FALSE(holds(equals, true));
  EXPECT_FALSE(holds(differs, false)) << "in an Allow";
  EXPECT_TRUE(holds(differs, true)) << "in a Deny";
}

TEST(Condition, RejectsConditionsThatAwsRejects) {
  const struct {
    const char *name, *key, *wanted, *message;
  } kTable[] = {
      {"StringMatches", "aws:x", R"("a")", "Invalid Condition type : StringMatches"},
      {"stringequals", "aws:x", R"("a")", "Invalid Condition type : stringequals"},
      {"NullIfExists", "aws:x", R"("true")", "Invalid Condition type : NullIfExists"},
      {"ForSomeValues:StringEquals", "aws:x", R"("a")",
       "Invalid Condition type : ForSomeValues:StringEquals"},
      {"StringEquals", "x", R"("a")",
       "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."},
      {"StringEquals", "aws:x", R"({"a": 1})", "Syntax errors in policy."},
      {"StringEquals", "aws:x", R"([["a"]])", "Syntax errors in policy."},
      {"StringEquals", "aws:x", "null", "Syntax errors in policy."},
      {"NumericEquals", "aws:x", R"("ten")", "The value 'ten' of a condition is not a number."},
      {"NumericEquals", "aws:x", R"("inf")", "The value 'inf' of a condition is not a number."},
      {"DateEquals", "aws:x", R"("2024-13-01")",
       "The value '2024-13-01' of a condition is not a date."},
      {"Bool", "aws:x", R"("1")", "The value '1' of a condition is not true or false."},
      {"BinaryEquals", "aws:x", R"("!")", "The value '!' of a condition is not base64."},
      {"IpAddress", "aws:x", R"("10.0.0.0/40")",
       "The value '10.0.0.0/40' of a condition is not an IP address or CIDR range."},
  };
  for (const auto& [name, key, wanted, message] : kTable) {
    const auto condition = Condition::compile(name, key, *parse_json(wanted), true);
    ASSERT_FALSE(condition) << name;
    EXPECT_EQ(condition.error().message, message);
  }
}

}  // namespace
}  // namespace trainyard::policy
