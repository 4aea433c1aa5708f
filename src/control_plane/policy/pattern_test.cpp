#include "policy/pattern.hpp"

#include <gtest/gtest.h>

namespace trainyard::policy {
namespace {

std::optional<bool> match(std::string_view pattern, std::string_view text,
                          const ConditionValues& values = {},
                          PatternOptions options = {.variables = true}) {
  const auto compiled = Pattern::compile(pattern, options);
  EXPECT_TRUE(compiled) << pattern;
  return compiled ? compiled->match(text, values) : std::nullopt;
}

TEST(Pattern, WildcardsSpanColonsAndSlashes) {
  const struct {
    const char *pattern, *text;
    bool matches;
  } kTable[] = {
      {"*", "", true},
      {"*", "arn:aws:s3:::a/b", true},
      {"arn:aws:s3:::a/*", "arn:aws:s3:::a/b/c:d", true},
      {"arn:aws:s3:::a/*", "arn:aws:s3:::a", false},
      {"arn:*:x", "arn:aws:s3:::x", true},
      {"a*b*c", "axxbxxc", true},
      {"a*b*c", "axxbxx", false},
      {"a*a", "a", false},
      {"a?c", "abc", true},
      {"a?c", "ac", false},
      {"?", "", false},
      {"*?", "x", true},
      {"?*?", "x", false},
      {"caf?", "caf\xc3\xa9", true},
      {"*\xc3\xa9?*", "un \xc3\xa9t\xc3\xa9", true},
      {"", "", true},
      {"", "x", false},
      {"***x", "x", true},
  };
  for (const auto& [pattern, text, expected] : kTable)
    EXPECT_EQ(match(pattern, text), expected) << pattern << " on " << text;
}

TEST(Pattern, TreatsValuesOfVariablesAsLiteralText) {
  ConditionValues values;
  values.set("aws:username", "a*");
  values.set("AWS:PrincipalTag/Team", "red");
  values.set("aws:TagKeys", std::vector<std::string>{"one", "two"});
  EXPECT_EQ(match("home/${aws:username}/*", "home/a*/x", values), true);
  EXPECT_EQ(match("home/${aws:username}/*", "home/abc/x", values), false)
      << "a value's '*' is not a wildcard";
  EXPECT_EQ(match("${aws:principaltag/team}-${aws:UserName}", "red-a*", values), true);
  EXPECT_EQ(match("${aws:PrincipalTag/Missing}", "", values), std::nullopt);
  EXPECT_EQ(match("${aws:PrincipalTag/Missing, 'blue'}", "blue", values), true);
  EXPECT_EQ(match("${aws:PrincipalTag/Team, 'blue'}", "blue", values), false);
  EXPECT_EQ(match("${aws:TagKeys}", "one", values), std::nullopt)
      << "a key with several values is not a text";
  EXPECT_EQ(match("${*}${?}${$}", "*?$", values), true);
  EXPECT_EQ(match("a${*}", "ab", values), false);
  EXPECT_EQ(match("$x", "$x", values), true);
}

TEST(Pattern, IgnoresVariablesWhenDisabled) {
  EXPECT_EQ(match("${aws:username}", "${aws:username}", {}, {.variables = false}), true);
  EXPECT_EQ(match("a*", "a*", {}, {.wildcards = false}), true);
  EXPECT_EQ(match("a*", "ab", {}, {.wildcards = false}), false);
}

// The bytes that mark wildcards in compiled patterns must not be wildcards in values.
TEST(Pattern, AcceptsNoWildcardBytesInValues) {
  ConditionValues values;
  values.set("aws:username", std::string("\xff"));
  EXPECT_EQ(match("home/${aws:username}", "home/secret", values), std::nullopt);
  EXPECT_EQ(match("home/x", "home/\xff"), false);
}

TEST(Pattern, RejectsInvalidVariables) {
  for (const char* text : {"${", "${}", "${aws:username", "${a, }", "${a, 'b}", "${a, 'b' c}"})
    EXPECT_FALSE(Pattern::compile(text, {.variables = true})) << text;
}

// With backtracking, these comparisons would practically never end.
TEST(Pattern, MatchesHostilePatternsInBoundedTime) {
  std::string stars, marks;
  for (int i = 0; i < 500; ++i) stars += "a*", marks += "?*a";
  const std::string text(100'000, 'a');
  EXPECT_EQ(match(stars + "b", text), false);
  EXPECT_EQ(match(marks + "b", text), false);
  EXPECT_EQ(match("*" + std::string(1'000, '?') + "b*", text), false);
}

TEST(Pattern, MatchesArnsByComponent) {
  const auto arn = [](std::string_view pattern, std::string_view text) {
    const auto compiled = Pattern::compile(pattern, {});
    return matches_arn(compiled->text(), text);
  };
  EXPECT_TRUE(arn("arn:aws:sns:*:111122223333:topic", "arn:aws:sns:eu-west-1:111122223333:topic"));
  EXPECT_FALSE(arn("arn:aws:sns:*:topic", "arn:aws:sns:eu-west-1:111122223333:topic"))
      << "a '*' stays in its component";
  EXPECT_TRUE(arn("arn:aws:logs:*:*:log-group:*",
                  "arn:aws:logs:us-east-1:111122223333:log-group:a:log-stream:b"));
  EXPECT_TRUE(arn("*", "arn:aws:s3:::x"));
  EXPECT_FALSE(arn("arn:aws:s3:::x", "x"));
}

}  // namespace
}  // namespace trainyard::policy
