#include "dispatch/match.hpp"

#include <gtest/gtest.h>

#include "dispatch/shell.hpp"
#include "shapes/s3.hpp"
#include "shapes/sagemaker.hpp"
#include "shapes/sts.hpp"

namespace trainyard::api {
namespace {

OperationTable table() {
  OperationTable table;
  table.add_quick<shapes::sagemaker::StopTrainingJob>(
      [](const Context&, const auto&) -> Outcome<shapes::sagemaker::StopTrainingJob::Output> {
        return validation_exception("unused");
      });
  table.add<shapes::sts::GetCallerIdentity>(
      [](const Context&, const auto&) -> Outcome<shapes::sts::GetCallerIdentity::Output> {
        return validation_exception("unused");
      });
  table.add<shapes::s3::HeadObject>(
      [](const Context&, const auto&) -> Outcome<shapes::s3::HeadObject::Output> {
        return validation_exception("unused");
      });
  return table;
}

net::RequestHead head(const std::string& method, const std::string& target,
                      const std::string& service = "s3") {
  net::RequestHead head;
  head.method = method;
  head.target = target;
  head.headers.add("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261120/eu-west-1/" +
                                        service + "/aws4_request, SignedHeaders=host, Signature=0");
  return head;
}

TEST(Match, FindsTheEntryOfAnOperationInTheHead) {
  const OperationTable operations = table();
  net::RequestHead request = head("POST", "/", "sagemaker");
  request.headers.add("X-Amz-Target", "SageMaker.StopTrainingJob");
  const Match found = match(operations, request);
  ASSERT_TRUE(found.entry);
  EXPECT_EQ(found.entry->shape->name, "StopTrainingJob");
  EXPECT_FALSE(may_block(operations, found));
}

TEST(Match, FindsTheEntryOfAnOperationInTheBody) {
  const OperationTable operations = table();
  Match found = match(operations, head("POST", "/", "sts"));
  EXPECT_FALSE(found.entry);
  EXPECT_TRUE(may_block(operations, found)) << "one of the service's operations does";
  match_name(operations, "GetCallerIdentity", found);
  ASSERT_TRUE(found.entry);
  EXPECT_EQ(found.entry->shape->name, "GetCallerIdentity");
  match_name(operations, "Unknown", found);
  EXPECT_FALSE(found.entry);
  EXPECT_EQ(found.operation_name, "Unknown");
}

TEST(Match, FindsTheEntryAndTheAddressOfAnS3Request) {
  const OperationTable operations = table();
  const net::RequestHead request = head("HEAD", "/bucket/a%20b");
  Match found = match(operations, request);
  EXPECT_FALSE(found.entry) << "not before the signature is verified";
  match_s3(operations, request, found);
  ASSERT_TRUE(found.entry);
  EXPECT_FALSE(found.failure);
  EXPECT_EQ(found.entry->shape->name, "HeadObject");
  EXPECT_EQ(found.address.bucket, "bucket");
  EXPECT_EQ(found.address.key, "a b");
}

TEST(Match, KeepsTheFailureOfAnS3Request) {
  const OperationTable operations = table();
  const auto failure_of = [&](const std::string& method, const std::string& target) {
    const net::RequestHead request = head(method, target);
    Match found = match(operations, request);
    match_s3(operations, request, found);
    EXPECT_FALSE(found.entry);
    return found.failure ? found.failure->code : "none";
  };
  EXPECT_EQ(failure_of("GET", "/bucket/%zz"), "InvalidURI");
  EXPECT_EQ(failure_of("GET", "/bucket?inventory"), "NotImplemented");
  EXPECT_EQ(failure_of("PUT", "/bucket/key"), "NotImplemented") << "not in the table";
}

TEST(Match, FindsShellsByTheirPath) {
  const Match found = match(table(), head("GET", std::string(kShellPath) + "?job=a", "trainyard"));
  EXPECT_TRUE(found.shell);
  EXPECT_EQ(found.operation_name, "Shell");
}

}  // namespace
}  // namespace trainyard::api
