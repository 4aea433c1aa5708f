#include "insights/contributor_report.hpp"

#include "base/testing/test_clock.hpp"
#include "insights/insight_rules.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::insights {
namespace {

const std::string kRegion = "eu-west-1";

std::string rule_text(const std::string& contribution, const std::string& more = "") {
  return R"({"Schema": {"Name": "CloudWatchLogRule", "Version": 1}, "LogGroupNames": ["g*"], )"
         R"("LogFormat": "JSON", "Contribution": {)" +
         contribution + "}" + more + "}";
}

ContributorRule parse(const std::string& text) {
  auto rule = ContributorRule::parse(text);
  EXPECT_TRUE(rule) << (rule ? "" : rule.error().message);
  return *rule;
}

TEST(ContributorRule, FindsKeysAndValues) {
  const auto rule = parse(rule_text(R"("Keys": ["$.ip", "$.path"], "ValueOf": "$.bytes")"));
  EXPECT_FALSE(rule.counts());
  const auto found = rule.of(R"({"ip": "1.2.3.4", "path": "/", "bytes": 12})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->keys, (std::vector<std::string>{"1.2.3.4", "/"}));
  EXPECT_EQ(found->value, 12);
  for (const char* message :
       {"text", R"({"ip": "1.2.3.4", "bytes": 12})", R"({"ip": "1", "path": "/", "bytes": "many"})",
        R"({"ip": "1", "path": "/", "bytes": 1e999})"})
    EXPECT_FALSE(rule.of(message)) << message;
}

TEST(ContributorRule, AppliesFilters) {
  const std::pair<const char*, bool> kCases[] = {
      {R"({"Match": "$.status", "EqualTo": 503})", true},
      {R"({"Match": "$.status", "In": [200, 404]})", false},
      {R"({"Match": "$.status", "NotIn": [200, 404]})", true},
      {R"({"Match": "$.none", "NotEqualTo": "x"})", true},
      {R"({"Match": "$.status", "GreaterThan": 499})", true},
      {R"({"Match": "$.status", "LessThan": 500})", false},
      {R"({"Match": "$.path", "StartsWith": ["/b", "/a"]})", true},
      {R"({"Match": "$.none", "IsPresent": false})", true},
      {R"({"Match": "$.status", "IsPresent": false})", false}};
  for (const auto& [filter, holds] : kCases) {
    const auto rule =
        parse(rule_text(R"("Keys": ["$.path"], "Filters": [)" + std::string(filter) + "]"));
    EXPECT_EQ(rule.of(R"({"status": 503, "path": "/a"})").has_value(), holds) << filter;
  }
}

TEST(ContributorRule, NamesFieldsOfOtherFormats) {
  const auto clf = parse(
      R"({"Schema": {"Name": "CloudWatchLogRule", "Version": 1}, "LogGroupNames": ["g"],
          "LogFormat": "CLF", "Fields": {"1": "Ip", "4": "Bytes"}, "AggregateOn": "Sum",
          "Contribution": {"Keys": ["Ip"], "ValueOf": "Bytes"}})");
  const auto found = clf.of(R"(1.2.3.4 [10/Oct/2026 13:55] "GET / HTTP/1.1" 2326 more fields)");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->keys.at(0), "1.2.3.4");
  EXPECT_EQ(found->value, 2326);
  const auto pattern = parse(
      R"({"Schema": "CloudWatchLogRule", "LogGroupNames": ["g"], "LogFormat": "JSON",
          "Filter": "[at, request, status = 5*]",
          "Contribution": {"Keys": ["status"], "ValueOf": "Count"}})");
  EXPECT_TRUE(pattern.counts());
  EXPECT_EQ(pattern.of("now GET 503")->keys.at(0), "503");
  EXPECT_FALSE(pattern.of("now GET 200"));
}

TEST(ContributorRule, RejectsInvalidDefinitions) {
  const std::string keys = R"("Keys": ["$.a"])";
  for (const std::string& text :
       {std::string("no JSON"), std::string("{}"), std::string("[]"),
        rule_text(R"("ValueOf": "$.a")"), rule_text(R"("Keys": [])"),
        rule_text(R"("Keys": ["$.a", "$.b", "$.c", "$.d", "$.e"])"),
        rule_text(R"("Keys": ["$.["])"), rule_text(R"("Keys": ["a b"])"),
        rule_text(keys, R"(, "AggregateOn": "Sum")"), rule_text(keys, R"(, "AggregateOn": "Max")"),
        rule_text(keys + R"(, "Filters": [{"Match": "$.a"}])"),
        rule_text(keys + R"(, "Filters": [{"Match": "$.a", "Like": "b"}])"),
        rule_text(keys + R"(, "Filters": [1])"), rule_text(keys, R"(, "Filter": "[a")"),
        rule_text(keys + std::string(9000, ' '))}) {
    const auto rule = ContributorRule::parse(text);
    EXPECT_FALSE(rule) << text;
    if (rule) continue;
    EXPECT_TRUE(rule.error().message.starts_with("Invalid ")) << rule.error().message;
  }
}

struct ReportWorld {
  observe::TemporaryDirectory directory;
  TestClock clock;
  std::unique_ptr<observe::Logs> logs = *observe::open_logs(directory.path(), clock);

  void append(const std::string& group, const std::string& message) {
    ASSERT_OK(logs->ensure_stream({kRegion, group, "s"}));
    ASSERT_OK(logs->append({kRegion, group, "s"}, {{clock.now(), {}, message}}));
  }
  ContributorQuery query() {
    return {.region = kRegion,
            .from = clock.now() - 1h,
            .to = clock.now() + 1h,
            .may_read = [](const std::string& group) { return group != "g-secret"; }};
  }
};

TEST(ContributorReport, CountsTheTopContributors) {
  ReportWorld world;
  for (const char* ip : {"a", "b", "a", "c", "a", "b"})
    world.append("g1", R"({"ip": ")" + std::string(ip) + R"("})");
  world.clock.advance(60s);
  for (int i = 0; i < 3; ++i) world.append("g2", R"({"ip": "b"})");
  world.append("other", R"({"ip": "z"})");
  world.append("g-secret", R"({"ip": "z"})");  // the client may not read this group
  const auto rule = parse(rule_text(R"("Keys": ["$.ip"])"));
  auto query = world.query();
  query.contributors_max = 2;
  auto report = report_contributors(*world.logs, rule, query);
  ASSERT_OK(report);
  EXPECT_EQ(report->total, 9);
  EXPECT_EQ(report->contributors, 3u);
  ASSERT_EQ(report->top.size(), 2u);
  EXPECT_EQ(report->top[0].keys.at(0), "b");
  EXPECT_EQ(report->top[0].total, 5);
  EXPECT_EQ(report->top[0].periods.size(), 2u);
  ASSERT_EQ(report->periods.size(), 2u);
  const auto& first = report->periods.begin()->second;
  EXPECT_EQ(first.contributors, 3u);
  EXPECT_EQ(first.greatest, 3);
  EXPECT_EQ(first.samples, 6);
  query.contributors_max = 1;
  query.by_maximum = true;
  EXPECT_EQ(report_contributors(*world.logs, rule, query)->top[0].keys.at(0), "a");
}

TEST(ContributorReport, FailsBeyondItsLimits) {
  ReportWorld world;
  for (int i = 0; i < 5; ++i) world.append("g", R"({"ip": )" + std::to_string(i) + "}");
  const auto rule = parse(rule_text(R"("Keys": ["$.ip"])"));
  const auto kind = [&](ContributorLimits limits) {
    return report_contributors(*world.logs, rule, world.query(), limits).error().kind;
  };
  EXPECT_EQ(kind({.message_bytes_max = 20}), Kind::exhausted);
  EXPECT_EQ(kind({.message_bytes_max = 5 * kContributorEventBytes}), Kind::exhausted)
      << "the cost of an event includes more than its message";
  EXPECT_EQ(kind({.contributors_max = 3}), Kind::exhausted);
  EXPECT_EQ(kind({.periods_max = 10}), Kind::exhausted);
  EXPECT_EQ(kind({.cells_max = 4}), Kind::exhausted);
  ASSERT_OK(report_contributors(*world.logs, rule, world.query(), {.cells_max = 5}));
  world.clock.advance(60s);
  world.append("g", R"({"ip": 0})");
  EXPECT_EQ(kind({.cells_max = 5}), Kind::exhausted)
      << "a contributor in a second period is a second value";
}

TEST(InsightRules, LimitSimultaneousReports) {
  ReportWorld world;
  InsightRules rules(*world.logs);
  const auto rule = parse(rule_text(R"("Keys": ["$.ip"])"));
  {
    std::vector<InsightRules::ReportSlot> slots;
    for (size_t i = 0; i < kInsightReportsMax; ++i) {
      auto slot = rules.take_report_slot();
      ASSERT_OK(slot);
      slots.push_back(*std::move(slot));
    }
    const auto refused = rules.report(rule, world.query());
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().is(InsightFault::busy));
  }
  ASSERT_OK(rules.report(rule, world.query()));
  ASSERT_OK(rules.report(rule, world.query()));
  ASSERT_OK(rules.report(rule, world.query()));
}

TEST(InsightRules, KeepTagsAndTimeWhenReplaced) {
  ReportWorld world;
  InsightRules rules(*world.logs);
  const std::string text = rule_text(R"("Keys": ["$.ip"])");
  const Instant first = world.clock.now();
  ASSERT_OK(rules.put(kRegion, "r", {.definition = text, .disabled = first, .tags = {{"a", "b"}}}));
  ASSERT_OK(
      rules.put(kRegion, "r", {.definition = text, .disabled = first + 1h, .tags = {{"c", "d"}}}));
  auto found = rules.find(kRegion, "r");
  ASSERT_OK(found);
  EXPECT_EQ(found->disabled, first);
  EXPECT_EQ(found->tags, (std::map<std::string, std::string>{{"a", "b"}}));
  ASSERT_OK(rules.put(kRegion, "r", {.definition = text}));
  EXPECT_FALSE(rules.find(kRegion, "r")->disabled);
  ASSERT_OK(rules.put(kRegion, "r", {.definition = text, .disabled = first + 2h}));
  EXPECT_EQ(rules.find(kRegion, "r")->disabled, first + 2h);
}

TEST(InsightRules, AreStoredAcrossRestarts) {
  observe::TemporaryDirectory directory;
  TestClock clock;
  {
    const auto logs = *observe::open_logs(directory.path(), clock);
    InsightRules rules(*logs);
    ASSERT_OK(rules.put(kRegion, "r",
                        {.definition = rule_text(R"("Keys": ["$.ip"])"), .tags = {{"a", "b"}}}));
    EXPECT_EQ(rules.put(kRegion, "s", {.definition = "{}"}).error().kind, Kind::invalid);
    ASSERT_OK(rules.change(kRegion, "r", [&](InsightRule& rule) -> Result<void> {
      rule.disabled = clock.now();
      return ok();
    }));
  }
  const auto logs = *observe::open_logs(directory.path(), clock);
  InsightRules rules(*logs);
  EXPECT_EQ(rules.find(kRegion, "r")->disabled, clock.now());
  EXPECT_EQ(rules.list(kRegion)->size(), 1u);
  EXPECT_EQ(rules.find("other", "r").error().kind, Kind::not_found);
  ASSERT_OK(rules.remove(kRegion, "r"));
  EXPECT_EQ(rules.remove(kRegion, "r").error().kind, Kind::not_found);
}

}  // namespace
}  // namespace trainyard::insights
