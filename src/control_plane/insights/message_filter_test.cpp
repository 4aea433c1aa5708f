#include "insights/message_filter.hpp"

#include <optional>

#include "insights/testing/test_pipeline.hpp"

namespace trainyard::insights {
namespace {

// nullopt: the query has no condition on messages.
std::optional<bool> passes(const std::string& text, std::string_view message) {
  const auto filter = message_filter(std::make_shared<const Query>(parsed(text)));
  if (!filter) return {};
  return filter(message);
}

TEST(MessageFilter, HasTheConditionsThatDependOnlyOnTheMessage) {
  for (const char* text : {
           "filter @message like /needle/",
           "filter @message like 'needle'",
           "filter not (@message not like /needle/)",
           "filter @message like /needle/ or @message like /pin/",
           "filter @logStream = 's' and @message like /needle/",
           "fields @timestamp, @message | filter @message like /needle/",
           "fields strlen(@message) as n | filter n > 1 | filter @message like /needle/",
           "parse @message 'loss=*' as loss | filter @message like /needle/ and loss > 1",
           "filter @message like /needle/ | stats count(*) by bin(5m)",
       }) {
    EXPECT_EQ(passes(text, "a needle"), true) << text;
    EXPECT_EQ(passes(text, "hay"), false) << text;
    EXPECT_EQ(passes(text, ""), false) << text;
  }
}

TEST(MessageFilter, LeavesOutOtherConditions) {
  for (const char* text : {
           "fields @message",
           "stats count(*)",
           "filter @logStream = 's'",
           "filter loss > 1",
           "filter loss > 1 or @message like /needle/",
           "filter loss like /needle/",
           "limit 10 | filter @message like /needle/",
           "dedup @logStream | filter @message like /needle/",
           "fields @logStream as @message | filter @message like /needle/",
           "parse @logStream '*' as @message | filter @message like /needle/",
           "stats count(*) by @message | filter @message like /needle/",
       })
    EXPECT_EQ(passes(text, "hay"), std::nullopt) << text;
}

// The results over the events that pass equal the results over all events.
TEST(MessageFilter, DoesNotChangeResults) {
  const std::vector<std::string> messages = {
      "a needle loss=1",   "hay loss=2", "NEEDLE",        "",
      "needle pin loss=3", "pin",        "{\"loss\": 4}", "{\"m\": \"a needle\"}"};
  for (const char* text : {
           "filter @message like /needle/ | stats count(*) as n",
           "filter @message like /(?i)needle/ and @message not like 'pin' | fields @message",
           "filter not (@message like 'needle' or @message like 'pin') | fields @message",
           "parse @message 'loss=*' as loss | filter @message like /e/ | stats sum(loss) as s",
           "fields @message | filter @message like /needle/ | sort @message desc | limit 2",
           "filter @message like /needle/ | filter m like /a/ | fields m",
       }) {
    const auto filter = message_filter(std::make_shared<const Query>(parsed(text)));
    ASSERT_TRUE(filter) << text;
    std::vector<std::string> passed;
    for (const auto& message : messages)
      if (filter(message)) passed.push_back(message);
    EXPECT_LT(passed.size(), messages.size());
    EXPECT_EQ(shown(run_query(text, passed)), shown(run_query(text, messages))) << text;
  }
}

}  // namespace
}  // namespace trainyard::insights
