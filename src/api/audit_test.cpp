// What the audit log has of requests, and what LookupEvents finds in it.
#include "api/audit.hpp"

#include <gtest/gtest.h>

#include "api/operations/operations.hpp"
#include "api/test_server.hpp"

namespace trainyard::api {
namespace {

using in_memory::Signing;

struct World : TestServer {
  std::unique_ptr<observe::AuditLog> audit = *observe::open_audit_log(directory.path() + "/audit");

  World() { open(audit.get()); }
  in_memory::Reply logs_call(const std::string& operation, const std::string& body, const Signing& by = {}) {
    return json("Logs_20140328." + operation, body, "logs", by);
  }
  // The events of LookupEvents, newest first, without those of LookupEvents itself.
  std::vector<Json> lookup(const std::string& body = "{}") {
    const auto reply =
        json("com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101.LookupEvents", body, "cloudtrail");
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::vector<Json> events;
    const Json answer = *parse_json(reply.body);
    for (const Json& one : answer.at("Events"))
      if (one.at("EventName") != "LookupEvents") events.push_back(one);
    return events;
  }
};

TEST(AuditOfRequests, TellsWhoFromWhereWhatAndTheAnswer) {
  World world;
  ASSERT_EQ(world.logs_call("CreateLogGroup", R"({"logGroupName":"one"})").status, 200);
  EXPECT_EQ(world.logs_call("CreateLogGroup", R"({"logGroupName":"one"})").status, 400);
  const auto events = world.lookup();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].at("EventName"), "CreateLogGroup");
  EXPECT_EQ(events[1].at("EventSource"), "logs.amazonaws.com");
  EXPECT_EQ(events[1].at("ReadOnly"), "false");
  EXPECT_EQ(events[1].at("AccessKeyId"), "AKIAOWNER");
  ASSERT_EQ(events[1].at("Resources").size(), 1u);
  EXPECT_NE(events[1].at("Resources")[0].at("ResourceName").get<std::string>().find(":log-group:one"),
            std::string::npos);
  EXPECT_EQ(events[1].at("Resources")[0].at("ResourceType"), "AWS::Logs::LogGroup");
  const Json record = *parse_json(events[0].at("CloudTrailEvent").get<std::string>());
  EXPECT_EQ(record.at("sourceIPAddress"), "192.0.2.7");
  EXPECT_EQ(record.at("errorCode"), "ResourceAlreadyExistsException");
  EXPECT_EQ(record.at("eventVersion"), "1.08");
  EXPECT_EQ(record.at("userIdentity").at("accountId"), "123456789012");
  EXPECT_FALSE(parse_json(events[1].at("CloudTrailEvent").get<std::string>())->contains("errorCode"));
  EXPECT_TRUE(observe::verify_audit_log(world.directory.path() + "/audit"));
}

TEST(AuditOfRequests, WritesHostileTextAsOneJsonObjectOnALine) {
  World world;
  const std::string hostile = "a\"b\\c\n{\"previousDigest\":1}\x01\xff\xc3\xa4";
  Context context;
  context.principal.arn = "arn:aws:iam::1:user/" + hostile;
  context.user_agent = hostile;
  std::vector<std::string> resources(1'000, "arn:aws:s3:::bucket/" + hostile);
  const std::string text =
      audit_record({context, *all_services()[0], "CreateBucket", 403, hostile, resources, "id"});
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto record = parse_json(text);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->at("userAgent"), to_utf8(hostile));
  EXPECT_EQ(record->at("errorCode"), to_utf8(hostile));
  EXPECT_EQ(record->at("userIdentity").at("arn"), "arn:aws:iam::1:user/" + to_utf8(hostile));
  EXPECT_EQ(record->at("resources").size(), 100u);
}

TEST(AuditOfRequests, LeavesOutDataAndStrangers) {
  World world;
  ASSERT_EQ(world.logs_call("CreateLogGroup", R"({"logGroupName":"one"})").status, 200);
  EXPECT_EQ(world.logs_call("GetLogEvents", R"({"logGroupName":"one","logStreamName":"s"})").status, 400);
  const Signing stranger{.keys = {"AKIAOWNER", "wrong", ""}};
  EXPECT_NE(world.logs_call("CreateLogGroup", R"({"logGroupName":"two"})", stranger).status, 200);
  EXPECT_EQ(world.logs_call("DescribeLogGroups", "{}").status, 200);
  const auto events = world.lookup();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("EventName"), "DescribeLogGroups");
  EXPECT_EQ(events[0].at("ReadOnly"), "true");
  EXPECT_EQ(events[1].at("EventName"), "CreateLogGroup");
}

TEST(AuditOfRequests, DeniedRequestsForDataAreRecorded) {
  Context context{.principal = {.account = "1", .arn = "arn:aws:iam::1:user/ana", .name = "ana"}};
  const auto recorded = [&](const shapes::Service& service, std::string_view operation, int status) {
    return is_recorded({context, service, operation, status, "", {}, ""});
  };
  const shapes::Service *s3 = nullptr, *sagemaker = nullptr, *logs = nullptr;
  for (const shapes::Service* one : all_services()) {
    if (one->name == "s3") s3 = one;
    if (one->name == "sagemaker") sagemaker = one;
    if (one->name == "logs") logs = one;
  }
  EXPECT_FALSE(recorded(*s3, "GetObject", 200));
  EXPECT_FALSE(recorded(*s3, "GetObject", 404));
  EXPECT_TRUE(recorded(*s3, "GetObject", 403));
  EXPECT_FALSE(recorded(*s3, "UploadPart", 200));
  EXPECT_TRUE(recorded(*s3, "CreateBucket", 200));
  EXPECT_TRUE(recorded(*sagemaker, "DescribeTrainingJob", 200));
  EXPECT_TRUE(is_recorded({context, *logs, "PutLogEvents", 400, "AccessDeniedException", {}, ""}));
  EXPECT_FALSE(is_recorded({context, *logs, "PutLogEvents", 400, "InvalidParameterException", {}, ""}));
  context.principal.arn.clear();
  EXPECT_FALSE(recorded(*sagemaker, "DescribeTrainingJob", 403));
}

TEST(AuditOfRequests, LooksUpByAttributeAndPage) {
  World world;
  for (const char* name : {"a", "b", "c"})
    ASSERT_EQ(world.logs_call("CreateLogGroup", std::string(R"({"logGroupName":")") + name + "\"}").status,
              200);
  ASSERT_EQ(world.logs_call("DescribeLogGroups", "{}").status, 200);
  EXPECT_EQ(
      world.lookup(R"({"LookupAttributes":[{"AttributeKey":"EventName","AttributeValue":"CreateLogGroup"}]})")
          .size(),
      3u);
  EXPECT_EQ(
      world.lookup(R"({"LookupAttributes":[{"AttributeKey":"ReadOnly","AttributeValue":"true"}]})").size(),
      1u);
  const std::string target = "com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101.LookupEvents";
  const auto page = world.json(
      target,
      R"({"MaxResults":2,"LookupAttributes":[{"AttributeKey":"EventName","AttributeValue":"CreateLogGroup"}]})",
      "cloudtrail");
  const Json first = *parse_json(page.body);
  ASSERT_EQ(first.at("Events").size(), 2u);
  Json next{{"MaxResults", 2}, {"NextToken", first.at("NextToken")}};
  next["LookupAttributes"] =
      Json::array({{{"AttributeKey", "EventName"}, {"AttributeValue", "CreateLogGroup"}}});
  EXPECT_EQ(parse_json(world.json(target, next.dump(), "cloudtrail").body)->at("Events").size(), 1u);
  for (
      const auto& [body, code] : std::vector<std::pair<std::string, std::string>>{
          {R"({"NextToken":"x"})", "InvalidNextTokenException"},
          {R"({"StartTime":20,"EndTime":10})", "InvalidTimeRangeException"},
          {R"({"LookupAttributes":[{"AttributeKey":"EventId","AttributeValue":"a"},{"AttributeKey":"EventId","AttributeValue":"b"}]})",
           "InvalidLookupAttributesException"}})
    EXPECT_NE(world.json(target, body, "cloudtrail").body.find(code), std::string::npos) << body;
}

}  // namespace
}  // namespace trainyard::api
