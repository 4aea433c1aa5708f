// Tests the records of requests in the audit log, and LookupEvents.
#include "audit/audit.hpp"

#include <gtest/gtest.h>

#include "dispatch/shell.hpp"
#include "dispatch/testing/tenants.hpp"
#include "dispatch/testing/test_server.hpp"
#include "shapes/services.hpp"

namespace trainyard::api {
namespace {

using in_memory::Signing;

struct AuditedServer : TestServer {
  std::unique_ptr<observe::AuditLog> audit = *observe::open_audit_log(directory.path() + "/audit");

  AuditedServer() { open(audit.get()); }
  in_memory::Reply logs_call(const std::string& operation, const std::string& body,
                             const Signing& by = {}) {
    return json("Logs_20140328." + operation, body, "logs", by);
  }
  // Returns the events of LookupEvents, newest first, without its own.
  std::vector<Json> lookup(const std::string& body = "{}") {
    const auto reply = json("com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101.LookupEvents",
                            body, "cloudtrail");
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::vector<Json> events;
    const Json answer = *parse_json(reply.body);
    for (const Json& one : answer.at("Events"))
      if (one.at("EventName") != "LookupEvents") events.push_back(one);
    return events;
  }
};

TEST(AuditOfRequests, RecordsPrincipalSourceRequestAndAnswer) {
  AuditedServer world;
  ASSERT_EQ(world.logs_call("CreateLogGroup", R"({"logGroupName":"one"})").status, 200);
  EXPECT_EQ(world.logs_call("CreateLogGroup", R"({"logGroupName":"one"})").status, 400);
  const auto events = world.lookup();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].at("EventName"), "CreateLogGroup");
  EXPECT_EQ(events[1].at("EventSource"), "logs.amazonaws.com");
  EXPECT_EQ(events[1].at("ReadOnly"), "false");
  EXPECT_EQ(events[1].at("AccessKeyId"), "AKIAOWNER");
  ASSERT_EQ(events[1].at("Resources").size(), 1u);
  EXPECT_NE(
      events[1].at("Resources")[0].at("ResourceName").get<std::string>().find(":log-group:one"),
      std::string::npos);
  EXPECT_EQ(events[1].at("Resources")[0].at("ResourceType"), "AWS::Logs::LogGroup");
  const Json record = *parse_json(events[0].at("CloudTrailEvent").get<std::string>());
  EXPECT_EQ(record.at("sourceIPAddress"), "192.0.2.7");
  EXPECT_EQ(record.at("errorCode"), "ResourceAlreadyExistsException");
  EXPECT_EQ(record.at("eventVersion"), "1.08");
  EXPECT_EQ(record.at("userIdentity").at("accountId"), "123456789012");
  EXPECT_FALSE(
      parse_json(events[1].at("CloudTrailEvent").get<std::string>())->contains("errorCode"));
  EXPECT_TRUE(observe::verify_audit_log(world.directory.path() + "/audit"));
}

TEST(AuditOfRequests, WritesHostileTextAsOneJsonObjectOnALine) {
  AuditedServer world;
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

TEST(AuditOfRequests, LeavesOutDataAndUnauthenticatedPeers) {
  AuditedServer world;
  ASSERT_EQ(world.logs_call("CreateLogGroup", R"({"logGroupName":"one"})").status, 200);
  EXPECT_EQ(world.logs_call("GetLogEvents", R"({"logGroupName":"one","logStreamName":"s"})").status,
            400);
  const Signing unauthenticated{.keys = {"AKIAOWNER", "wrong", ""}};
  EXPECT_NE(world.logs_call("CreateLogGroup", R"({"logGroupName":"two"})", unauthenticated).status,
            200);
  EXPECT_EQ(world.logs_call("DescribeLogGroups", "{}").status, 200);
  const auto events = world.lookup();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("EventName"), "DescribeLogGroups");
  EXPECT_EQ(events[0].at("ReadOnly"), "true");
  EXPECT_EQ(events[1].at("EventName"), "CreateLogGroup");
}

TEST(AuditOfRequests, RecordsDeniedRequestsForData) {
  Context context{.principal = {.account = "1", .arn = "arn:aws:iam::1:user/ana", .name = "ana"}};
  const auto recorded = [&](const shapes::Service& service, std::string_view operation,
                            int status) {
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
  EXPECT_FALSE(
      is_recorded({context, *logs, "PutLogEvents", 400, "InvalidParameterException", {}, ""}));
  context.principal.arn.clear();
  EXPECT_FALSE(recorded(*sagemaker, "DescribeTrainingJob", 403));
}

// Opens shells that print a text and end after 90 s.
struct ShortShells final : gateway::Shells {
  explicit ShortShells(TestClock& clock) : clock(clock) {}
  struct ShortShell final : gateway::Shell {
    explicit ShortShell(TestClock& clock) : clock(clock) {}
    Result<void> take(std::string_view) override { return ok(); }
    std::string give() override {
      clock.advance(90s);
      return "hello";
    }
    bool over() override { return true; }
    int descriptor() const override { return -1; }
    TestClock& clock;
  };
  Result<std::unique_ptr<gateway::Shell>> open(const gateway::ShellOrder& order) override {
    if (order.job.name != "mnist-1") return not_found("no job " + order.job.name + " runs");
    return std::unique_ptr<gateway::Shell>(new ShortShell(clock));
  }
  TestClock& clock;
};

struct AuditedShells : TestTenants {
  std::unique_ptr<observe::AuditLog> audit = *observe::open_audit_log(directory.path() + "/audit");
  ShortShells short_shells{clock};

  AuditedShells() {
    services.shells = &short_shells;
    open(audit.get());
  }
  int shell(const std::string& job, const Signing& by, const std::string& more = "") {
    return send(in_memory::signed_request(
                    "GET", std::string(kShellPath) + "?job=" + job + "&host=1" + more,
                    {{"Upgrade", std::string(kShellProtocol)}}, "", "trainyard", clock.now(), by))
        ->status;
  }
  std::vector<Json> records() {  // oldest first
    std::vector<Json> found;
    EXPECT_TRUE(audit->flush());
    const auto page = audit->lookup({});
    EXPECT_TRUE(page);
    for (const Json& one : page->events)
      if (one.at("eventSource") == "trainyard.amazonaws.com") found.insert(found.begin(), one);
    return found;
  }
};

TEST(AuditOfShells, RecordsPrincipalSourceHostAndDuration) {
  AuditedShells world;
  const Signing ann = world.add_user("ann", allow("\"trainyard:Shell\"", "\"*\""));
  EXPECT_EQ(world.shell("mnist-1", ann,
                        "&request=" + percent_encode(R"({"command":["echo","hunter2"]})")),
            101);
  const auto records = world.records();
  ASSERT_EQ(records.size(), 2u);
  for (const Json& one : records) {
    EXPECT_EQ(one.at("userIdentity").at("userName"), "ann");
    EXPECT_EQ(one.at("sourceIPAddress"), "192.0.2.7");
    EXPECT_EQ(one.at("resources")[0].at("ARN"),
              "arn:aws:sagemaker:eu-west-1:123456789012:training-job/mnist-1");
    EXPECT_EQ(one.at("additionalEventData").at("host"), "algo-2");
    EXPECT_EQ(one.at("readOnly"), false);
    EXPECT_FALSE(one.contains("errorCode"));
    EXPECT_EQ(one.at("requestID"), records[0].at("requestID"));
    EXPECT_EQ(one.dump().find("hunter2"), std::string::npos) << "commands may carry secrets";
  }
  EXPECT_EQ(records[0].at("eventName"), "Shell");
  EXPECT_EQ(records[0].at("eventTime"), "2026-11-20T09:45:00Z");
  EXPECT_EQ(records[0].at("eventType"), "AwsApiCall");
  EXPECT_FALSE(records[0].contains("serviceEventDetails"));
  EXPECT_EQ(records[1].at("eventName"), "ShellEnded");
  EXPECT_EQ(records[1].at("eventTime"), "2026-11-20T09:46:30Z");
  EXPECT_EQ(records[1].at("eventType"), "AwsServiceEvent");
  EXPECT_EQ(records[1].at("serviceEventDetails").at("durationSeconds"), 90);
  EXPECT_NE(records[1].at("eventID"), records[0].at("eventID"));
}

TEST(AuditOfShells, RecordsRejectedShellsOnce) {
  AuditedShells world;
  const Signing eve = world.add_user("eve", allow("\"sagemaker:*\"", "\"*\""));
  EXPECT_EQ(world.shell("mnist-1", eve), 400);
  EXPECT_EQ(world.shell("gone", world.owner), 400);
  EXPECT_EQ(world.shell("mnist-1", {{"AKIAOWNER", "wrong", ""}, "eu-west-1"}), 403)
      << "of an unknown user";
  const auto records = world.records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].at("eventName"), "Shell");
  EXPECT_EQ(records[0].at("errorCode"), "AccessDeniedException");
  EXPECT_EQ(records[0].at("userIdentity").at("userName"), "eve");
  EXPECT_EQ(records[0].at("additionalEventData").at("host"), "algo-2");
  EXPECT_EQ(records[1].at("errorCode"), "ValidationException");
  EXPECT_TRUE(std::string(records[1].at("resources")[0].at("ARN")).ends_with("/gone"));
}

TEST(AuditOfRequests, LooksUpByAttributeAndPage) {
  AuditedServer world;
  for (const char* name : {"a", "b", "c"})
    ASSERT_EQ(world.logs_call("CreateLogGroup", std::string(R"({"logGroupName":")") + name + "\"}")
                  .status,
              200);
  ASSERT_EQ(world.logs_call("DescribeLogGroups", "{}").status, 200);
  EXPECT_EQ(
      world
          .lookup(
              R"({"LookupAttributes":[{"AttributeKey":"EventName","AttributeValue":"CreateLogGroup"}]})")
          .size(),
      3u);
  EXPECT_EQ(
      world.lookup(R"({"LookupAttributes":[{"AttributeKey":"ReadOnly","AttributeValue":"true"}]})")
          .size(),
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
  EXPECT_EQ(parse_json(world.json(target, next.dump(), "cloudtrail").body)->at("Events").size(),
            1u);
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
