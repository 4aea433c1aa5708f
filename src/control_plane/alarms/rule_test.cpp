#include "alarms/rule.hpp"

#include <gtest/gtest.h>

namespace trainyard::alarms {
namespace {

bool holds(std::string_view text) {
  const auto rule = Rule::parse(text);
  EXPECT_TRUE(rule) << text << ": " << (rule ? "" : rule.error().message);
  return rule && rule->holds([](const std::string& name) {
    return name == "hot" || name == "very hot" ? State::alarm
           : name == "cool"                    ? State::ok
                                               : State::insufficient_data;
  });
}

TEST(Rule, EvaluatesStatesAndOperators) {
  const struct {
    std::string_view rule;
    bool holds;
  } rows[] = {{"ALARM(hot)", true},
              {"ALARM(\"very hot\")", true},
              {"ALARM('cool')", false},
              {"OK( cool )", true},
              {"INSUFFICIENT_DATA(new)", true},
              {"ALARM(arn:aws:cloudwatch:us-east-1:123456789012:alarm:hot)", true},
              {"NOT ALARM(hot)", false},
              {"NOT NOT ALARM(hot)", true},
              {"ALARM(cool) OR ALARM(hot) AND ALARM(cool)", false},
              {"(ALARM(cool) OR ALARM(hot)) AND OK(cool)", true},
              {"NOT ALARM(cool) AND TRUE", true},
              {"NOT (ALARM(cool) OR FALSE)", true},
              {"ALARM(hot)\n  AND OK(cool) AND NOT FALSE", true}};
  for (const auto& row : rows) EXPECT_EQ(holds(row.rule), row.holds) << row.rule;
}

TEST(Rule, RejectsInvalidRulesWithTheUnexpectedText) {
  const struct {
    std::string_view rule, error;
  } rows[] = {{"", "the rule ends too early"},
              {"hot", "unexpected 'hot'"},
              {"ALARM", "the rule ends too early"},
              {"ALARM()", "unexpected ')'"},
              {"ALARM(hot", "unexpected 'hot'"},
              {"ALARM(\"hot)", "unexpected '\"hot)'"},
              {"ALARM(hot) OK(cool)", "unexpected 'OK(cool)'"},
              {"ALARM(hot) AND", "the rule ends too early"},
              {"alarm(hot)", "unexpected 'alarm(hot)'"},
              {"(ALARM(hot)", "the rule ends too early"},
              {"ALARMS(hot)", "unexpected 'ALARMS(hot)'"}};
  for (const auto& row : rows) {
    const auto rule = Rule::parse(row.rule);
    ASSERT_FALSE(rule) << row.rule;
    EXPECT_EQ(rule.error().message, row.error);
  }
}

TEST(Rule, RejectsRulesBeyondTheLimits) {
  EXPECT_FALSE(Rule::parse(std::string(3000, '(') + "TRUE" + std::string(3000, ')')));
  std::string nots;
  for (int i = 0; i < 2000; ++i) nots += "NOT ";
  EXPECT_FALSE(Rule::parse(nots + "TRUE"));
  EXPECT_FALSE(Rule::parse("TRUE" + std::string(kRuleBytesMax, ' ')));
  std::string all = "ALARM(a0)";
  for (int i = 1; i < 100; ++i) all += " OR ALARM(a" + std::to_string(i) + ")";
  EXPECT_EQ(Rule::parse(all)->alarms().size(), 100u);
  EXPECT_FALSE(Rule::parse(all + " OR ALARM(a100)"));
}

TEST(Rule, FindsCycles) {
  const std::map<std::string, std::set<std::string>> children{
      {"b", {"c", "x"}}, {"c", {"d"}}, {"d", {}}};
  EXPECT_EQ(find_cycle("a", {"b", "x"}, children), "");
  EXPECT_EQ(find_cycle("d", {"b"}, children), "d -> b -> c -> d");
  EXPECT_EQ(find_cycle("a", {"a"}, children), "a -> a");
  EXPECT_EQ(find_cycle("a", {}, children), "");
}

}  // namespace
}  // namespace trainyard::alarms
