// Fails each disk operation once, during changes of rules. Acknowledged changes must be stored, and
// failed changes must leave nothing.
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>

#include "base/file_faults.hpp"
#include "base/testing/test_clock.hpp"
#include "insights/insight_rules.hpp"
#include "observe/testing/test_world.hpp"
#include "observe/watched_logs.hpp"
#include "sqlite/file_watch.hpp"

namespace trainyard::insights {
namespace {

constexpr int kRuleChanges = 12;
const std::string kFaultRegion = "eu-west-1";
const std::string kFaultRule =
    R"({"Schema": {"Name": "CloudWatchLogRule", "Version": 1}, "LogGroupNames": ["g"], )"
    R"("LogFormat": "JSON", "Contribution": {"Keys": ["$.ip"]}})";

// The step that wrote each rule, by the rule's name.
using RuleSteps = std::map<std::string, std::string>;

RuleSteps stored_rules(InsightRules& rules) {
  RuleSteps steps;
  const auto found = rules.list(kFaultRegion);
  EXPECT_TRUE(found);
  for (const auto& [name, rule] : *found) steps[name] = rule.tags.at("step");
  return steps;
}

// Creates, changes and removes rules, and returns the acknowledged state.
RuleSteps change_rules(InsightRules& rules) {
  RuleSteps acknowledged;
  int failed = 0;
  for (int i = 0; i < kRuleChanges; ++i) {
    const std::string name = "rule-" + std::to_string(i % 3);
    const std::string step = std::to_string(i);
    const bool exists = acknowledged.contains(name);
    const bool removes = exists && i % 4 == 3;
    Result<void> done = ok();
    if (!exists)
      done = rules.put(kFaultRegion, name, {.definition = kFaultRule, .tags = {{"step", step}}});
    else if (removes)
      done = rules.remove(kFaultRegion, name);
    else
      done = rules.change(kFaultRegion, name, [&](InsightRule& rule) -> Result<void> {
        rule.tags["step"] = step;
        return ok();
      });
    if (!done) {
      ++failed;
      EXPECT_TRUE(done.error().kind == Kind::exhausted || done.error().kind == Kind::unavailable)
          << done.error().message;
    } else if (removes) {
      acknowledged.erase(name);
    } else {
      acknowledged[name] = step;
    }
    EXPECT_EQ(stored_rules(rules), acknowledged);
  }
  EXPECT_LE(failed, 1);
  return acknowledged;
}

void fail_each_rule_step(int error_number) {
  for (uint64_t nth = 1;; ++nth) {
    ASSERT_LT(nth, 1000u);
    const observe::TemporaryDirectory directory;
    TestClock clock;
    NthFileFault fault(nth, error_number);
    sqlite::FileWatch watch(&fault);
    RuleSteps acknowledged;
    {
      const auto logs = *observe::open_watched_logs(directory.path(), clock, {}, watch.name());
      InsightRules rules(*logs);
      fault.arm();
      acknowledged = change_rules(rules);
    }
    const auto logs = *observe::open_logs(directory.path(), clock);
    InsightRules rules(*logs);
    EXPECT_EQ(stored_rules(rules), acknowledged) << nth;
    ASSERT_OK(rules.put(kFaultRegion, "after", {.definition = kFaultRule}));
    if (!fault.struck()) return;
  }
}

TEST(InsightRuleFaults, FullDiskLosesNoAcknowledgedRule) { fail_each_rule_step(ENOSPC); }
TEST(InsightRuleFaults, DiskErrorLosesNoAcknowledgedRule) { fail_each_rule_step(EIO); }

}  // namespace
}  // namespace trainyard::insights
