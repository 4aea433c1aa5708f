// Tests policies of buckets: the documents that a bucket accepts, and those that are public.
#include "policy/bucket_policy.hpp"

#include <gtest/gtest.h>

#include "policy/evaluate.hpp"

namespace trainyard::policy {
namespace {

Identities account() {
  Identities identities("123456789012");
  User ann;
  ann.name = "ann";
  identities.put(std::move(ann));
  return identities;
}

std::string bucket_statement(const std::string& principal = "\"*\"",
                             const std::string& resource = "arn:aws:s3:::data/*",
                             const std::string& action = "s3:GetObject",
                             const std::string& more = "", const std::string& effect = "Allow") {
  return R"({"Version": "2012-10-17", "Statement": [{"Effect": ")" + effect +
         R"(", "Principal": )" + principal + R"(, "Action": ")" + action + R"(", "Resource": ")" +
         resource + "\"" + more + "}]}";
}

Result<std::shared_ptr<const Policy>> parse_for_bucket(const std::string& document) {
  return parse_bucket_policy(document, "data", account());
}

TEST(BucketPolicy, MayNameOnlyItsBucketAndThisAccount) {
  for (
      const std::string& good :
      {bucket_statement(), bucket_statement(R"({"AWS": "*"})"),
       bucket_statement(R"({"AWS": "123456789012"})"),
       bucket_statement(R"({"AWS": "arn:aws:iam::123456789012:root"})"),
       bucket_statement(
           R"({"AWS": ["arn:aws:iam::123456789012:user/ann", "arn:aws:iam::123456789012:role/never-defined"]})"),
       bucket_statement("\"*\"", "arn:aws:s3:::data"),
       bucket_statement("\"*\"", "arn:aws:s3:::data/${aws:username}/*"),
       bucket_statement("\"*\"", "arn:aws:s3:::data/*", "*"),
       bucket_statement("\"*\"", "arn:aws:s3:::data/*", "s3:*")}) {
    const auto policy = parse_for_bucket(good);
    EXPECT_TRUE(policy) << good << policy.error().message;
  }
  const auto why = [](const std::string& document) {
    const auto policy = parse_for_bucket(document);
    return policy ? "" : policy.error().message;
  };
  for (const char* resource :
       {"arn:aws:s3:::other/*", "arn:aws:s3:::data2", "arn:aws:s3:::dat*", "arn:aws:s3:::*", "*",
        "arn:aws:s3:::data*", "arn:aws:s3:::${aws:username}/*", "arn:aws:sqs:::data/x"})
    EXPECT_EQ(why(bucket_statement("\"*\"", resource)), "Policy has invalid resource") << resource;
  for (const char* principal :
       {R"({"AWS": "210987654321"})", R"({"AWS": "arn:aws:iam::123456789012:user/bob"})",
        R"({"AWS": "arn:aws:iam::210987654321:user/ann"})",
        R"({"Federated": "accounts.google.com"})"})
    EXPECT_EQ(why(bucket_statement(principal)), "Invalid principal in policy") << principal;
  EXPECT_EQ(why(bucket_statement("\"*\"", "arn:aws:s3:::data/*", "sqs:SendMessage")),
            "Policy has invalid action");
  EXPECT_FALSE(parse_for_bucket("{}"));
  EXPECT_FALSE(parse_for_bucket(
      R"({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/*"}]})"))
      << "without a principal";
  EXPECT_FALSE(parse_for_bucket(
      bucket_statement("\"*\"", "arn:aws:s3:::data/" + std::string(kBucketPolicyBytesMax, 'x'))));
}

TEST(BucketPolicy, IsPublicWhenItAllowsAllPrincipalsUnconditionally) {
  const auto is = [](const std::string& document) {
    return is_public(**parse_for_bucket(document));
  };
  EXPECT_TRUE(is(bucket_statement()));
  EXPECT_TRUE(is(bucket_statement(R"({"AWS": "*"})")));
  EXPECT_FALSE(is(bucket_statement(R"({"AWS": "arn:aws:iam::123456789012:user/ann"})")));
  EXPECT_FALSE(
      is(bucket_statement("\"*\"", "arn:aws:s3:::data/*", "s3:GetObject",
                          R"(, "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}})")));
  EXPECT_FALSE(is(bucket_statement("\"*\"", "arn:aws:s3:::data/*", "s3:GetObject", "", "Deny")));
}

bool is_public_if(const std::string& condition) {
  return is_public(**parse_for_bucket(bucket_statement(
      "\"*\"", "arn:aws:s3:::data/*", "s3:GetObject", ", \"Condition\": " + condition)));
}

TEST(BucketPolicy, IsNotPublicWhenAConditionLimitsTheCallers) {
  for (const char* condition :
       {R"({"IpAddress": {"aws:SourceIp": ["10.0.0.0/8", "2001:db8::/32"]}})",
        R"({"StringEquals": {"aws:SourceAccount": "123456789012"}})",
        R"({"StringLike": {"AWS:sourceVpce": ["vpce-1", "vpce-2"]}})",
        R"({"ArnLike": {"aws:SourceArn": "arn:aws:sagemaker:eu-west-1:123456789012:job/a"}})",
        R"({"ForAnyValue:StringEquals": {"aws:PrincipalOrgID": "o-1"}})",
        R"({"Bool": {"aws:SecureTransport": "true"}, "StringEquals": {"aws:userid": "AIDA1"}})"})
    EXPECT_FALSE(is_public_if(condition)) << condition;
}

TEST(BucketPolicy, IsPublicWithConditionsThatAllCallersMeet) {
  for (const char* condition :
       {R"({"Bool": {"aws:SecureTransport": "true"}})", R"({"Null": {"aws:SourceIp": "false"}})",
        R"({"StringLike": {"aws:UserAgent": "fixed"}})",
        R"({"IpAddress": {"aws:SourceIp": "0.0.0.0/0"}})",
        R"({"IpAddress": {"aws:SourceIp": ["10.0.0.0/8", "0.0.0.0/1"]}})",
        R"({"IpAddress": {"aws:SourceIp": "::/0"}})",
        R"({"IpAddress": {"aws:VpcSourceIp": "10.0.0.0/8"}})",
        R"({"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}})",
        R"({"IpAddressIfExists": {"aws:SourceIp": "10.0.0.0/8"}})",
        R"({"StringNotEquals": {"aws:SourceAccount": "123456789012"}})",
        R"({"StringEqualsIfExists": {"aws:SourceVpc": "vpc-1"}})",
        R"({"ForAllValues:StringEquals": {"aws:PrincipalOrgID": "o-1"}})",
        R"({"StringLike": {"aws:userid": "AROA1:*"}})",
        R"({"StringLike": {"aws:SourceVpc": ["vpc-1", "vpc-?"]}})",
        R"({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/a"}})",
        R"({"StringEquals": {"aws:userid": "${aws:userid}"}})"})
    EXPECT_TRUE(is_public_if(condition)) << condition;
}

}  // namespace
}  // namespace trainyard::policy
