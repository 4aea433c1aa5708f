#include "agent/output/metric_matcher.hpp"

#include <gtest/gtest.h>

namespace trainyard::agent {
namespace {

// Returns "name=value .." of the line's points.
std::string found(const std::vector<domain::MetricDefinition>& definitions,
                  const std::string& line) {
  const auto matcher = make_metric_matcher(definitions);
  if (!matcher) return matcher.error().message;
  std::vector<wire::MetricPoint> points;
  (*matcher)->match(line, {}, points);
  std::string text;
  for (const auto& point : points) {
    char value[32];
    std::snprintf(value, sizeof value, "%g", point.value);
    text += (text.empty() ? "" : " ") + point.name + "=" + value;
  }
  return text;
}

TEST(MetricMatcher, FindsValuesOfGroupsOrMatches) {
  const std::vector<domain::MetricDefinition> two = {{"loss", "loss=([0-9.e+-]+)"},
                                                     {"acc", R"(accuracy:\s*(\S+))"}};
  EXPECT_EQ(found(two, "epoch 3 loss=0.25 accuracy: 0.9"), "loss=0.25 acc=0.9");
  EXPECT_EQ(found(two, "loss=1e-3"), "loss=0.001");
  EXPECT_EQ(found(two, "nothing here"), "");
  EXPECT_EQ(found(two, "accuracy: nan"), "");
  EXPECT_EQ(found(two, "accuracy: high"), "");
  EXPECT_EQ(found({{"whole", "[0-9]+"}}, "step 17"), "whole=17");
  EXPECT_EQ(found({}, "loss=1"), "");
}

TEST(MetricMatcher, MatchesTabsInBothNotations) {
  const std::string line = "[12]\ttrain-auc:0.8\tvalidation-auc:0.75";
  EXPECT_EQ(found({{"auc", R"(.*\[[0-9]+\].*#011validation-auc:([-+]?[0-9]*\.?[0-9]+).*)"}}, line),
            "auc=0.75");
  EXPECT_EQ(found({{"auc", R"(\tvalidation-auc:(\S+))"}}, line), "auc=0.75");
}

TEST(MetricMatcher, ReportsUnsupportedRegexes) {
  EXPECT_NE(found({{"loss", "(?<=a)b"}}, "ab").find("metric loss"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::agent
