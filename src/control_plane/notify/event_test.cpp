#include "notify/event.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "notify/event_feed.hpp"
#include "notify/event_targets.hpp"

namespace trainyard::notify {
namespace {

Json sample() {
  return event_json({.region = "eu-west-1",
                     .source = "aws.batch",
                     .detail_type = "Batch Job State Change",
                     .time = kTestClockStart,
                     .resources = {"arn:one", "arn:two"},
                     .detail = {{"state", "FAILED"}, {"quote", "say \"x\""}, {"codes", {1, 2}}},
                     .id = "id-1"},
                    "123456789012");
}

TEST(Event, HasTheShapeOfEventBridge) {
  EXPECT_EQ(sample(),
            (Json{{"version", "0"},
                  {"id", "id-1"},
                  {"detail-type", "Batch Job State Change"},
                  {"source", "aws.batch"},
                  {"account", "123456789012"},
                  {"time", "2025-11-20T09:45:00Z"},
                  {"region", "eu-west-1"},
                  {"resources", {"arn:one", "arn:two"}},
                  {"detail", {{"state", "FAILED"}, {"quote", "say \"x\""}, {"codes", {1, 2}}}}}));
}

TEST(Event, FindsValuesByPath) {
  const Json event = sample();
  EXPECT_EQ(*value_at(event, "$.detail.state"), "FAILED");
  EXPECT_EQ(*value_at(event, "$.detail.codes[1]"), 2);
  EXPECT_EQ(*value_at(event, "$.detail-type"), "Batch Job State Change");
  EXPECT_EQ(*value_at(event, "$"), event);
  for (const char* path : {"$.missing", "$.detail.state.deeper", "$.resources[2]", "$.detail[0]"})
    EXPECT_EQ(value_at(event, path), nullptr) << path;
  for (const char* path : {"", "detail", "$detail", "$.", "$..a", "$.a[", "$.a[x]", "$.a[-1]",
                           "$.a[0]b", "$.a[99999999999999999999]"}) {
    EXPECT_FALSE(check_path(path)) << path;
    EXPECT_EQ(value_at(event, path), nullptr) << path;
  }
}

std::string input(const Target& target) {
  return input_of(target, sample(), "arn:aws:events:eu-west-1:123456789012:rule/r",
                  kTestClockStart);
}

TEST(Input, IsTheEventAConstantOrAPartOfTheEvent) {
  EXPECT_EQ(input({}), dump(sample()));
  EXPECT_EQ(input({.input = "{\"a\": 1}"}), "{\"a\": 1}");
  EXPECT_EQ(input({.input_path = "$.detail.codes"}), "[1,2]");
  EXPECT_EQ(input({.input_path = "$.missing"}), "null");
}

TEST(Input, FillsATemplate) {
  Target target;
  target.paths = {{"state", "$.detail.state"},
                  {"quote", "$.detail.quote"},
                  {"codes", "$.detail.codes"},
                  {"none", "$.missing"}};
  const struct {
    const char *pattern, *expected;
  } rows[] = {
      {R"({"s": <state>, "c": <codes>})", R"({"s": "FAILED", "c": [1,2]})"},
      {R"("The state is <state>.")", R"("The state is FAILED.")"},
      {R"({"s": "<quote> <codes>"})", R"({"s": "say \"x\" [1,2]"})"},
      {R"({"n": <none>, "t": "<none>!"})", R"({"n": null, "t": "!"})"},
      {R"({"r": "<aws.events.rule-name>"})", R"({"r": "r"})"},
      {R"(<unknown> < state> a<b)", R"(<unknown> < state> a<b)"},
      {R"({"q": "\"<state>\""})", R"({"q": "\"FAILED\""})"},
  };
  for (const auto& row : rows) {
    target.input_template = row.pattern;
    EXPECT_EQ(input(target), row.expected) << row.pattern;
  }
  target.input_template = "<aws.events.event>";
  EXPECT_EQ(input(target), dump(sample()));
}

TEST(Input, RejectsInvalidDefinitions) {
  EXPECT_TRUE(check_input({.id = "1", .input = "{}"}));
  EXPECT_FALSE(check_input({.id = "1", .input = "{"}));
  EXPECT_FALSE(check_input({.id = "1", .input = "{}", .input_path = "$"}));
  EXPECT_FALSE(check_input({.id = "1", .input_path = "detail"}));
  EXPECT_FALSE(check_input({.id = "1", .paths = {{"aws.x", "$"}}, .input_template = "1"}));
  EXPECT_FALSE(check_input({.id = "1", .paths = {{"a b", "$"}}, .input_template = "1"}));
  EXPECT_FALSE(check_input({.id = "1", .paths = {{"a", "x"}}, .input_template = "1"}));
}

TEST(SubmitRequest, TakesOverridesFromTheInput) {
  Target target;
  target.arn = "arn:aws:batch:r:1:job-queue/q";
  target.batch = {{"jobDefinition", "d"}, {"jobName", "n"}};
  EXPECT_EQ(submit_request_of(target, "text"),
            (Json{{"jobDefinition", "d"}, {"jobName", "n"}, {"jobQueue", target.arn}}));
  EXPECT_EQ(submit_request_of(
                target, R"({"ContainerOverrides": {"Environment": [{"Name": "A", "Value": "B"}]},
                            "Parameters": {"Key": "v"}, "jobName": "other"})"),
            (Json{{"jobDefinition", "d"},
                  {"jobName", "n"},
                  {"jobQueue", target.arn},
                  {"containerOverrides",
                   {{"environment", Json::array({{{"name", "A"}, {"value", "B"}}})}}},
                  {"parameters", {{"Key", "v"}}}}));
  EXPECT_EQ(log_group_of_arn("arn:aws:logs:r:1:log-group:/aws/events/x:*"), "/aws/events/x");
  EXPECT_EQ(log_group_of_arn("arn:aws:logs:r:1:log-group:/aws/events/x"), "/aws/events/x");
  EXPECT_EQ(log_group_of_arn("arn:aws:sns:r:1:x"), "");
}

TEST(EventFeed, ReportsMissedEvents) {
  EventFeed feed;
  EXPECT_EQ(feed.position(), 0u);
  feed.add("r", std::make_shared<const Json>(1), 10);
  feed.add("other", std::make_shared<const Json>(2), 10);
  feed.add("r", std::make_shared<const Json>(3), 10);
  auto found = feed.since(0, "r", 1);
  ASSERT_EQ(found.events.size(), 1u);
  EXPECT_EQ(*found.events[0], 1);
  found = feed.since(found.position, "r", 10);
  ASSERT_EQ(found.events.size(), 1u);
  EXPECT_EQ(*found.events[0], 3);
  EXPECT_FALSE(found.missed);
  EXPECT_TRUE(feed.since(found.position, "r", 10).events.empty());
  for (size_t i = 0; i < EventFeed::kEventsMax; ++i)
    feed.add("r", std::make_shared<const Json>(4), 10);
  EXPECT_TRUE(feed.since(1, "r", 10).missed);
  EXPECT_FALSE(feed.since(feed.position(), "r", 10).missed);
  // An earlier process returned this position.
  EXPECT_TRUE(feed.since(feed.position() + 5, "r", 10).events.empty());
}

}  // namespace
}  // namespace trainyard::notify
