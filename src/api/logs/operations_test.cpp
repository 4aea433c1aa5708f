#include "shapes/logs.hpp"

#include <set>

#include "logs/operations.hpp"
#include "operations/testing/operation_caller.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;

const std::string kGroup = "/aws/sagemaker/TrainingJobs";

struct World : OperationsWorld {
  World() : OperationsWorld(add_operations) {}
  int64_t now() { return to_milliseconds(clock.now()); }
  void make(const std::string& stream) {
    ASSERT_TRUE(logs->ensure_stream({"eu-west-1", kGroup, stream}));
  }
  Outcome<aws::PutLogEventsResponse> put(const std::string& stream,
                                         std::vector<std::pair<int64_t, std::string>> events) {
    return call<aws::PutLogEvents>(put_request(stream, std::move(events)));
  }
  aws::PutLogEventsRequest put_request(const std::string& stream,
                                       std::vector<std::pair<int64_t, std::string>> events) {
    aws::PutLogEventsRequest in{.log_group_name = kGroup, .log_stream_name = stream};
    in.log_events.emplace();
    for (auto& [at, message] : events)
      in.log_events->push_back({.timestamp = at, .message = message});
    return in;
  }
  aws::GetLogEventsResponse get(aws::GetLogEventsRequest in) {
    in.log_group_name = kGroup;
    auto out = call<aws::GetLogEvents>(in);
    EXPECT_TRUE(out);
    return *out;
  }
};

std::vector<std::string> messages(const aws::GetLogEventsResponse& out) {
  std::vector<std::string> found;
  for (const auto& event : *out.events) found.push_back(*event.message);
  return found;
}
using Messages = std::vector<std::string>;

TEST(LogsOperations, HaveAwssErrorTexts) {
  World world;
  const aws::GetLogEventsRequest get{.log_group_name = "g", .log_stream_name = "s"};
  EXPECT_EQ(world.refusal<aws::GetLogEvents>(get),
            "ResourceNotFoundException: The specified log group does not exist.");
  ASSERT_TRUE(world.call<aws::CreateLogGroup>({.log_group_name = "g"}));
  EXPECT_EQ(world.refusal<aws::CreateLogGroup>({.log_group_name = "g"}),
            "ResourceAlreadyExistsException: The specified log group already exists");
  EXPECT_EQ(world.refusal<aws::GetLogEvents>(get),
            "ResourceNotFoundException: The specified log stream does not exist.");
  EXPECT_EQ(world.refusal<aws::CreateLogStream>({.log_group_name = "none", .log_stream_name = "s"}),
            "ResourceNotFoundException: The specified log group does not exist.");
  ASSERT_TRUE(world.call<aws::CreateLogStream>({.log_group_name = "g", .log_stream_name = "s"}));
  EXPECT_EQ(world.refusal<aws::CreateLogStream>({.log_group_name = "g", .log_stream_name = "s"}),
            "ResourceAlreadyExistsException: The specified log stream already exists");
  EXPECT_EQ(world.refusal<aws::DescribeLogStreams>({.log_group_name = "none"}),
            "ResourceNotFoundException: The specified log group does not exist.");
  EXPECT_EQ(
      world.refusal<aws::DescribeLogStreams>({}),
      "InvalidParameterException: Either logGroupName or logGroupIdentifier must be specified.");
}

TEST(LogsOperations, RepeatTheTokenAtTheEndOfAStream) {
  World world;
  world.make("s");
  ASSERT_TRUE(world.put("s", {{world.now(), "a"}, {world.now() + 1, "b"}, {world.now() + 2, "c"}}));
  auto out = world.get({.log_stream_name = "s", .limit = 2, .start_from_head = true});
  EXPECT_EQ(messages(out), (Messages{"a", "b"}));
  EXPECT_EQ(out.events->at(0).ingestion_time, world.now());
  out = world.get({.log_stream_name = "s", .next_token = out.next_forward_token, .limit = 2});
  EXPECT_EQ(messages(out), Messages{"c"});
  const auto last = out.next_forward_token;
  out = world.get({.log_stream_name = "s", .next_token = last});
  EXPECT_TRUE(out.events->empty());
  EXPECT_EQ(out.next_forward_token, last);
  ASSERT_TRUE(world.put("s", {{world.now(), "d"}}));
  EXPECT_EQ(messages(world.get({.log_stream_name = "s", .next_token = last})), Messages{"d"});
}

TEST(LogsOperations, ReturnTheLatestEventsByDefault) {
  World world;
  world.make("s");
  ASSERT_TRUE(world.put("s", {{world.now(), "a"}, {world.now() + 1, "b"}, {world.now() + 2, "c"}}));
  auto out = world.get({.log_stream_name = "s", .limit = 2});
  EXPECT_EQ(messages(out), (Messages{"b", "c"}));
  out = world.get({.log_stream_name = "s", .next_token = out.next_backward_token, .limit = 2});
  EXPECT_EQ(messages(out), Messages{"a"});
  const auto first = out.next_backward_token;
  out = world.get({.log_stream_name = "s", .next_token = first, .limit = 2});
  EXPECT_TRUE(out.events->empty());
  EXPECT_EQ(out.next_backward_token, first);
}

TEST(LogsOperations, ExcludeTheEndInGetAndIncludeItInFilter) {
  World world;
  world.make("s");
  const int64_t now = world.now();
  ASSERT_TRUE(world.put("s", {{now, "a"}, {now + 1, "b"}, {now + 2, "c"}}));
  EXPECT_EQ(messages(world.get({.log_stream_name = "s",
                                .start_time = now + 1,
                                .end_time = now + 2,
                                .start_from_head = true})),
            Messages{"b"});
  const auto found = world.call<aws::FilterLogEvents>(
      {.log_group_name = kGroup, .start_time = now + 1, .end_time = now + 2});
  ASSERT_TRUE(found);
  EXPECT_EQ((*found).events->size(), 2u);
}

TEST(LogsOperations, RejectInvalidTokens) {
  World world;
  world.make("s");
  ASSERT_TRUE(world.put("s", {{world.now(), "a"}}));
  for (const std::string token :
       {"x", "f/12", "q/00000000000000000000000000000000000000000000000000000000",
        "f/00000000000000000000000000000000000000000000000000000003",
        "f/99999999999999999999999999999999999999999999999999999999"})
    EXPECT_EQ(world.refusal<aws::GetLogEvents>(
                  {.log_group_name = kGroup, .log_stream_name = "s", .next_token = token}),
              "InvalidParameterException: The specified nextToken is invalid.");
  EXPECT_EQ(world.refusal<aws::FilterLogEvents>({.log_group_name = kGroup, .next_token = "x"}),
            "InvalidParameterException: The specified nextToken is invalid.");
  EXPECT_EQ(world.refusal<aws::DescribeLogStreams>(
                {.log_group_name = kGroup, .order_by = "LastEventTime", .next_token = "x"}),
            "InvalidParameterException: The specified nextToken is invalid.");
}

// As on AWS, where the token of a list by name is a name.
TEST(LogsOperations, AcceptAnyTextAsTokenOfAListByName) {
  World world;
  for (const char* stream : {"a", "b", "c"}) world.make(stream);
  auto streams = world.call<aws::DescribeLogStreams>({.log_group_name = kGroup, .limit = 2});
  ASSERT_TRUE(streams);
  EXPECT_EQ((*streams).next_token, kGroup + "@b");
  streams = world.call<aws::DescribeLogStreams>(
      {.log_group_name = kGroup, .next_token = (*streams).next_token});
  ASSERT_EQ((*streams).log_streams->size(), 1u);
  EXPECT_FALSE((*streams).next_token);
  for (const std::string token : {"x", "other@a", "invalid@token"}) {
    streams = world.call<aws::DescribeLogStreams>({.log_group_name = kGroup, .next_token = token});
    ASSERT_TRUE(streams);
    EXPECT_TRUE((*streams).log_streams->empty()) << token;
  }
  ASSERT_TRUE(world.call<aws::CreateLogGroup>({.log_group_name = "zz"}));
  auto groups = world.call<aws::DescribeLogGroups>({.limit = 1});
  EXPECT_EQ((*groups).next_token, kGroup);
  groups = world.call<aws::DescribeLogGroups>({.next_token = "zzz"});
  ASSERT_TRUE(groups);
  EXPECT_TRUE((*groups).log_groups->empty());
}

TEST(LogsOperations, ListStreamsOfAPrefixOnOnePage) {
  World world;
  for (int i = 0; i < 120; ++i) world.make("job/algo-" + std::to_string(1000 + i));
  const auto all = world.call<aws::DescribeLogStreams>({.log_group_name = kGroup,
                                                        .log_stream_name_prefix = "job/",
                                                        .order_by = "LogStreamName",
                                                        .limit = 50});
  ASSERT_TRUE(all);
  EXPECT_EQ((*all).log_streams->size(), 120u);
  EXPECT_FALSE((*all).next_token) << "an SDK would request pages forever";
  EXPECT_EQ((*all).log_streams->at(0).arn,
            "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/sagemaker/"
            "TrainingJobs:log-stream:job/algo-1000");

  for (const bool descending : {false, true}) {
    for (const std::string order : {"LogStreamName", "LastEventTime"}) {
      std::set<std::string> seen;
      aws::DescribeLogStreamsRequest in{
          .log_group_name = kGroup, .order_by = order, .descending = descending};
      int pages = 0;
      for (; pages < 10; ++pages) {
        const auto page = world.call<aws::DescribeLogStreams>(in);
        ASSERT_TRUE(page);
        for (const auto& stream : *(*page).log_streams) seen.insert(*stream.log_stream_name);
        in.next_token = (*page).next_token;
        if (!in.next_token) break;
      }
      EXPECT_EQ(pages, 2);
      EXPECT_EQ(seen.size(), 120u);
    }
  }
  EXPECT_EQ(world.refusal<aws::DescribeLogStreams>({.log_group_name = kGroup,
                                                    .log_stream_name_prefix = "job/",
                                                    .order_by = "LastEventTime"}),
            "InvalidParameterException: Cannot order by LastEventTime with a logStreamNamePrefix.");
}

TEST(LogsOperations, ListTheLatestStreamFirstIfRequested) {
  World world;
  for (const std::string name : {"old", "new", "never"}) world.make(name);
  ASSERT_TRUE(world.put("old", {{world.now() - 1000, "x"}}));
  ASSERT_TRUE(world.put("new", {{world.now(), "x"}}));
  const auto out = world.call<aws::DescribeLogStreams>(
      {.log_group_name = kGroup, .order_by = "LastEventTime", .descending = true});
  ASSERT_TRUE(out);
  EXPECT_EQ((*out).log_streams->at(0).log_stream_name, "new");
  EXPECT_EQ((*out).log_streams->at(0).last_event_timestamp, world.now());
  EXPECT_EQ((*out).log_streams->at(2).log_stream_name, "never");
  EXPECT_FALSE((*out).log_streams->at(2).last_event_timestamp);
}

TEST(LogsOperations, ListGroupsByPrefixPatternAndIdentifier) {
  World world;
  for (const std::string name : {"/aws/a", "/aws/b", "own"})
    ASSERT_TRUE(world.call<aws::CreateLogGroup>({.log_group_name = name}));
  const auto count = [&](const aws::DescribeLogGroupsRequest& in) {
    return world.call<aws::DescribeLogGroups>(in)->log_groups->size();
  };
  EXPECT_EQ(count({}), 3u);
  EXPECT_EQ(count({.log_group_name_prefix = "/aws/"}), 2u);
  EXPECT_EQ(count({.log_group_name_pattern = "w"}), 3u);
  EXPECT_EQ(count({.log_group_name_pattern = "ow"}), 1u);
  EXPECT_EQ(
      count({.log_group_identifiers = {{"arn:aws:logs:eu-west-1:123456789012:log-group:own"}}}),
      1u);
  EXPECT_EQ(count({.log_group_class = "DELIVERY"}), 0u);
  auto page = world.call<aws::DescribeLogGroups>({.limit = 2});
  EXPECT_EQ((*page).log_groups->at(0).arn,
            "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/a:*");
  page = world.call<aws::DescribeLogGroups>({.next_token = (*page).next_token, .limit = 2});
  EXPECT_EQ((*page).log_groups->at(0).log_group_name, "own");
  EXPECT_FALSE((*page).next_token);
  EXPECT_EQ(world.refusal<aws::DescribeLogGroups>(
                {.log_group_name_prefix = "a", .log_group_name_pattern = "b"}),
            "InvalidParameterException: LogGroupNamePrefix and LogGroupNamePattern are mutually "
            "exclusive parameters.");
}

TEST(LogsOperations, AcceptTheArnOfAGroup) {
  World world;
  world.make("s");
  const std::string arn = "arn:aws:logs:eu-west-1:123456789012:log-group:" + kGroup;
  EXPECT_TRUE(world.call<aws::GetLogEvents>({.log_group_identifier = arn, .log_stream_name = "s"}));
  EXPECT_TRUE(world.call<aws::DescribeLogStreams>({.log_group_identifier = arn + ":*"}));
  EXPECT_TRUE(world.call<aws::FilterLogEvents>({.log_group_identifier = kGroup}));
  EXPECT_EQ(
      world.refusal<aws::FilterLogEvents>(
          {.log_group_identifier = "arn:aws:logs:us-east-1:123456789012:log-group:" + kGroup}),
      "ResourceNotFoundException: The specified log group does not exist.");
  EXPECT_EQ(
      world.refusal<aws::FilterLogEvents>({.log_group_name = "a", .log_group_identifier = "b"}),
      "InvalidParameterException: LogGroupName and LogGroupIdentifier cannot both be specified.");
}

TEST(LogsOperations, CheckOrderSizesAndSpanOfNewEvents) {
  World world;
  world.make("s");
  const int64_t now = world.now();
  const auto refused = [&](std::vector<std::pair<int64_t, std::string>> events) {
    return world.refusal<aws::PutLogEvents>(world.put_request("s", std::move(events)));
  };
  EXPECT_EQ(refused({{now, "a"}, {now - 1, "b"}}),
            "InvalidParameterException: Log events in a single PutLogEvents request must be in "
            "chronological order.");
  EXPECT_EQ(refused({{now - 86'400'001, "a"}, {now, "b"}}),
            "InvalidParameterException: The batch of log events in a single PutLogEvents request "
            "cannot span more than 24 hours.");
  EXPECT_EQ(refused({{now, std::string(262'119, 'x')}}),
            "InvalidParameterException: Log event too large: 262145 bytes exceeds limit of 262144");
  EXPECT_EQ(refused({5, {now, std::string(250'000, 'x')}}),
            "InvalidParameterException: Upload too large: 1250130 bytes exceeds limit of 1048576");
  EXPECT_EQ(world.refusal<aws::PutLogEvents>(world.put_request("none", {{now, "a"}})),
            "ResourceNotFoundException: The specified log stream does not exist.");
  const auto fine = world.put("s", {{now, std::string(262'118, 'x')}});
  ASSERT_TRUE(fine);
  EXPECT_TRUE((*fine).next_sequence_token);
  EXPECT_FALSE((*fine).rejected_log_events_info);
}

TEST(LogsOperations, RejectEventsThatAreTooOldOrTooNew) {
  World world;
  world.make("s");
  constexpr int64_t kDay = 86'400'000, kHour = 3'600'000;
  auto out = world.put(
      "s", {{world.now() - 14 * kDay - kHour, "old"}, {world.now() - 14 * kDay + 1000, "kept"}});
  ASSERT_TRUE(out);
  EXPECT_EQ((*out).rejected_log_events_info->too_old_log_event_end_index, 1);
  EXPECT_FALSE((*out).rejected_log_events_info->too_new_log_event_start_index);
  out = world.put("s", {{world.now(), "kept"},
                        {world.now() + 2 * kHour + 1, "new"},
                        {world.now() + 3 * kHour, "newer"}});
  EXPECT_EQ((*out).rejected_log_events_info->too_new_log_event_start_index, 1);
  EXPECT_EQ(messages(world.get({.log_stream_name = "s"})), (Messages{"kept", "kept"}));
}

TEST(LogsOperations, FilterSeveralStreamsByPattern) {
  World world;
  for (const std::string name : {"a", "b"}) world.make(name);
  ASSERT_TRUE(world.put("a", {{world.now(), "loss=1"}, {world.now() + 2, "accuracy=1"}}));
  ASSERT_TRUE(world.put("b", {{world.now() + 1, "loss=2"}}));
  auto out = world.call<aws::FilterLogEvents>(
      {.log_group_name = kGroup, .filter_pattern = "loss", .limit = 1});
  ASSERT_TRUE(out);
  EXPECT_EQ((*out).events->at(0).message, "loss=1");
  out = world.call<aws::FilterLogEvents>(
      {.log_group_name = kGroup, .filter_pattern = "loss", .next_token = (*out).next_token});
  EXPECT_EQ((*out).events->at(0).log_stream_name, "b");
  EXPECT_FALSE((*out).next_token);
  EXPECT_EQ(world.refusal<aws::FilterLogEvents>(
                {.log_group_name = kGroup, .log_stream_names = {{"none"}}}),
            "ResourceNotFoundException: The specified log stream does not exist.");
  EXPECT_EQ(
      world.refusal<aws::FilterLogEvents>(
          {.log_group_name = kGroup, .log_stream_names = {{"a"}}, .log_stream_name_prefix = "a"}),
      "InvalidParameterException: logStreamNames and logStreamNamePrefix cannot both be "
      "specified.");
  EXPECT_EQ(
      world.refusal<aws::FilterLogEvents>({.log_group_name = kGroup, .start_from_head = false}),
      "InvalidParameterException: startFromHead: only true, the earliest events first, is "
      "supported.");
  EXPECT_TRUE(
      world.refusal<aws::FilterLogEvents>({.log_group_name = kGroup, .filter_pattern = "{ $.a"})
          .starts_with("InvalidParameterException: Invalid filter pattern"));
}

}  // namespace
}  // namespace trainyard::api::logs
