#include "client/query.hpp"

#include <gtest/gtest.h>

#include "client/client.hpp"

namespace trainyard::client {
namespace {

TEST(Query, EncodesRequestsAsForms) {
  EXPECT_EQ(query_body("ListUsers", "2010-05-08", Json::object()),
            "Action=ListUsers&Version=2010-05-08");
  EXPECT_EQ(query_body("TagUser", "1",
                       {{"MaxItems", 7}, {"TagKeys", {"a b", "c&d"}}, {"UserName", "ann@lab+1"}}),
            "Action=TagUser&Version=1&MaxItems=7&TagKeys.member.1=a%20b&TagKeys.member.2=c%26d"
            "&UserName=ann%40lab%2B1");
}

TEST(Query, ConvertsAnswersToJson) {
  const auto answer = query_answer(R"(<?xml version="1.0"?>
      <ListUsersResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/">
        <ListUsersResult>
          <Users>
            <member><UserName>ann</UserName><Tags></Tags></member>
            <member><UserName>bob</UserName></member>
          </Users>
          <IsTruncated>false</IsTruncated>
        </ListUsersResult>
        <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
      </ListUsersResponse>)");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->at("Users").size(), 2u);
  EXPECT_EQ(items_of(*answer, "Users")[1].at("UserName"), "bob");
  EXPECT_EQ(items_of(answer->at("Users")[0], "Tags"), Json::array());
  EXPECT_EQ(items_of(*answer, "Groups"), Json::array());
  EXPECT_EQ(answer->at("IsTruncated"), "false");
}

TEST(Query, ConvertsAnswersWithoutAResultToEmptyObjects) {
  EXPECT_EQ(*query_answer("<DeleteUserResponse><ResponseMetadata/></DeleteUserResponse>"),
            Json::object());
  EXPECT_EQ(*query_answer("<A><AResult/></A>"), Json::object());
  EXPECT_EQ(query_answer("not XML").error().kind, Kind::invalid);
}

TEST(Query, ConvertsAnswersOfEc2ToJson) {
  const auto answer = ec2_answer(R"(<?xml version="1.0"?>
      <DescribeRegionsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
        <requestId>1</requestId>
        <regionInfo>
          <item><regionName>eu-west-1</regionName></item>
          <item><regionName>us-east-1</regionName></item>
        </regionInfo>
      </DescribeRegionsResponse>)");
  ASSERT_TRUE(answer) << answer.error().message;
  const Json regions = items_of(*answer, "regionInfo");
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[1].at("regionName"), "us-east-1");
  EXPECT_EQ(*ec2_answer("<DescribeRegionsResponse/>"), Json::object());
  EXPECT_EQ(*ec2_answer("<A><item>1</item></A>"), Json::object());
  EXPECT_EQ(ec2_answer("not XML").error().kind, Kind::invalid);
}

TEST(Query, ReadsErrorsOfEc2) {
  const Error error =
      error_of({403,
                "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>not allowed"
                "</Message></Error></Errors><RequestID>1</RequestID></Response>"},
               "DescribeRegions");
  EXPECT_EQ(error.kind, Kind::denied);
  EXPECT_EQ(error.message, "not allowed");
}

TEST(Query, ErrorsKeepTheServersMessageWithTheMatchingKind) {
  const auto error = [](int status, const std::string& code) {
    return error_of({status, "<ErrorResponse><Error><Type>Sender</Type><Code>" + code +
                                 "</Code><Message>said by &lt;it&gt;</Message></Error>"
                                 "</ErrorResponse>"},
                    "CreateUser");
  };
  EXPECT_EQ(error(404, "NoSuchEntity").kind, Kind::not_found);
  EXPECT_EQ(error(409, "EntityAlreadyExists").kind, Kind::conflict);
  EXPECT_EQ(error(403, "AccessDenied").kind, Kind::denied);
  EXPECT_EQ(error(400, "UnmodifiableEntity").kind, Kind::invalid);
  EXPECT_EQ(error(409, "LimitExceeded").message, "said by <it>");
}

}  // namespace
}  // namespace trainyard::client
