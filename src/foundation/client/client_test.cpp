#include "client/client.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "client/upgrade.hpp"

namespace trainyard::client {
namespace {

TEST(ErrorOf, KeepsTheServersMessageWithTheMatchingKind) {
  struct Row {
    int status;
    const char* body;
    Kind kind;
    const char* message;
  };
  const Row rows[] = {
      {400, R"({"__type":"ValidationException","message":"Requested resource not found."})",
       Kind::not_found, "Requested resource not found."},
      {400, R"({"__type":"com.amazonaws.logs#ResourceNotFoundException","message":"no group"})",
       Kind::not_found, "no group"},
      {400, R"({"__type":"ValidationException","message":"2 validation errors"})", Kind::invalid,
       "2 validation errors"},
      {400, R"({"__type":"ResourceInUse","Message":"name is taken"})", Kind::conflict,
       "name is taken"},
      {400, R"({"__type":"AccessDeniedException","message":"no"})", Kind::denied, "no"},
      {403, "nothing that is JSON", Kind::denied, "nothing that is JSON"},
      {503, "", Kind::unavailable, "ListJobs failed with status 503"},
      {400, R"({"__type":"ThrottlingException","message":"slower"})", Kind::unavailable, "slower"},
      {413, R"({"__type":"RequestTooLarge","message":"big"})", Kind::exhausted, "big"},
      {400, R"([1])", Kind::invalid, "[1]"},
  };
  for (const Row& row : rows) {
    const Error error = error_of({row.status, row.body}, "ListJobs");
    EXPECT_EQ(error.kind, row.kind) << row.body;
    EXPECT_EQ(error.message, row.message);
  }
}

TEST(IsRepeatable, TrueForIdempotentOperations) {
  for (const char* name : {"DescribeTrainingJob", "ListJobs", "GetLogEvents", "StopTrainingJob"})
    EXPECT_TRUE(is_repeatable(name)) << name;
  for (const char* name : {"CreateTrainingJob", "InterruptTrainingJob", "AddTags"})
    EXPECT_FALSE(is_repeatable(name)) << name;
}

TEST(OpenClient, ReportsInvalidSettings) {
  TestClock clock;
  const signing::Keys keys{"AK", "secret", ""};
  for (const char* endpoint : {"", "127.0.0.1:4566", "ftp://a", "http://", "http://a/b"}) {
    const auto client =
        open_client({.endpoint = endpoint, .region = "us-east-1", .keys = keys}, clock);
    ASSERT_FALSE(client) << endpoint;
    EXPECT_EQ(client.error().kind, Kind::invalid);
  }
  EXPECT_EQ(open_client({.endpoint = "http://a:1", .region = "r"}, clock).error().kind,
            Kind::denied);
  EXPECT_TRUE(open_client({.endpoint = "http://a:1/", .region = "r", .keys = keys}, clock));
}

TEST(ReadUpgrade, WaitsForTheWholeHeader) {
  EXPECT_FALSE(*read_upgrade("HTTP/1.1 101 Swi", false));
  EXPECT_EQ(read_upgrade("HTTP/1.1 101 Swi", true).error().kind, Kind::invalid);
  EXPECT_EQ(read_upgrade(std::string(kUpgradeHeadBytesMax + 1, 'x'), false).error().kind,
            Kind::exhausted);
}

TEST(ReadUpgrade, KeepsTheBytesAfterTheHeader) {
  const auto upgrade =
      *read_upgrade("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nearly", false);
  ASSERT_TRUE(upgrade);
  EXPECT_EQ(upgrade->answer.status, 101);
  EXPECT_EQ(upgrade->early, "early");
}

TEST(ReadUpgrade, ReadsARefusalToItsContentLength) {
  const std::string head = "HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\n";
  EXPECT_FALSE(*read_upgrade(head + "no", false));
  const auto upgrade = *read_upgrade(head + "never more", false);
  ASSERT_TRUE(upgrade);
  EXPECT_EQ(upgrade->answer.status, 403);
  EXPECT_EQ(upgrade->answer.body, "never");
  EXPECT_EQ((*read_upgrade(head + "no", true))->answer.body, "no");
  EXPECT_EQ(read_upgrade("SSH-2.0\r\n\r\n", false).error().kind, Kind::invalid);
}

}  // namespace
}  // namespace trainyard::client
