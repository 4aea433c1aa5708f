// Tests POST policies: AWS's documented example, and each condition that a form can violate.
#include "auth/post_policy.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "signing/signing.hpp"

namespace trainyard::api {
namespace {

// From "Example: Browser-Based Upload using HTTP POST (Using AWS Signature Version 4)" in the API
// reference of S3. Its lines end in CRLF.
constexpr std::string_view kDocumented =
    "{ \"expiration\": \"2015-12-30T12:00:00.000Z\",\r\n"
    "  \"conditions\": [\r\n"
    "    {\"bucket\": \"sigv4examplebucket\"},\r\n"
    "    [\"starts-with\", \"$key\", \"user/user1/\"],\r\n"
    "    {\"acl\": \"public-read\"},\r\n"
    "    {\"success_action_redirect\": "
    "\"http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html\"},\r\n"
    "    [\"starts-with\", \"$Content-Type\", \"image/\"],\r\n"
    "    {\"x-amz-meta-uuid\": \"14365123651274\"},\r\n"
    "    {\"x-amz-server-side-encryption\": \"AES256\"},\r\n"
    "    [\"starts-with\", \"$x-amz-meta-tag\", \"\"],\r\n"
    "\r\n"
    "    {\"x-amz-credential\": \"AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request\"},\r\n"
    "    {\"x-amz-algorithm\": \"AWS4-HMAC-SHA256\"},\r\n"
    "    {\"x-amz-date\": \"20151229T000000Z\" }\r\n"
    "  ]\r\n"
    "}";
const Instant kThen = *parse_basic_iso8601("20151229T120000Z");

NameValues documented_form() {
  return {{"key", "user/user1/photo.jpg"},
          {"acl", "public-read"},
          {"success_action_redirect",
           "http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html"},
          {"content-type", "image/jpeg"},
          {"x-amz-meta-uuid", "14365123651274"},
          {"x-amz-server-side-encryption", "AES256"},
          {"x-amz-credential", "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"},
          {"x-amz-algorithm", "AWS4-HMAC-SHA256"},
          {"x-amz-date", "20151229T000000Z"},
          {"x-amz-meta-tag", ""},
          {"policy", "eyJ"},
          {"x-amz-signature", "8afd"}};
}

NameValues with(NameValues fields, const std::string& name, const std::string& value) {
  std::erase_if(fields, [&](const auto& field) { return field.first == name; });
  fields.emplace_back(name, value);
  return fields;
}

std::string why(const NameValues& fields, std::string_view bucket = "sigv4examplebucket",
                Instant now = kThen) {
  const auto policy = parse_post_policy(kDocumented);
  EXPECT_TRUE(policy) << policy.error().message;
  const auto checked = check_post_policy(*policy, fields, bucket, now);
  if (checked) return "";
  EXPECT_EQ(checked.error().kind, Kind::denied);
  return checked.error().message;
}

TEST(PostPolicy, MatchesTheDocumentedSignature) {
  const std::string key = signing::signing_key("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                               "20151229", {"us-east-1", "s3"});
  EXPECT_EQ(to_hex(signing::hmac_sha256(key, to_base64(kDocumented))),
            "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e");
}

TEST(PostPolicy, AcceptsTheDocumentedForm) { EXPECT_EQ(why(documented_form()), ""); }

TEST(PostPolicy, RejectsAFormThatViolatesACondition) {
  EXPECT_EQ(why(with(documented_form(), "key", "user/user2/photo.jpg")),
            "Invalid according to Policy: Policy Condition failed: [\"starts-with\", \"$key\", "
            "\"user/user1/\"]");
  for (const auto& [name, value] : NameValues{{"acl", "private"},
                                              {"acl", "public-read-write"},
                                              {"content-type", "text/html"},
                                              {"x-amz-meta-uuid", ""},
                                              {"x-amz-date", "20151229T000001Z"},
                                              {"success_action_redirect", "http://elsewhere/"},
                                              {"x-amz-server-side-encryption", "aws:kms"}})
    EXPECT_TRUE(why(with(documented_form(), name, value))
                    .starts_with("Invalid according to Policy: Policy Condition failed: "))
        << name;
  NameValues absent = documented_form();
  std::erase_if(absent, [](const auto& field) { return field.first == "x-amz-meta-uuid"; });
  EXPECT_NE(why(absent), "");
  EXPECT_NE(why(documented_form(), "another"), "");
}

TEST(PostPolicy, RejectsFieldsWithoutACondition) {
  EXPECT_EQ(why(with(documented_form(), "x-amz-meta-more", "x")),
            "Invalid according to Policy: Extra input fields: x-amz-meta-more");
  EXPECT_EQ(why(with(with(documented_form(), "x-amz-security-token", "t"), "cache-control", "c")),
            "Invalid according to Policy: Extra input fields: x-amz-security-token, cache-control");
  EXPECT_EQ(why(with(with(documented_form(), "x-ignore-this", "x"), "file", "")), "");
}

TEST(PostPolicy, RejectsAFormAfterTheExpiration) {
  EXPECT_EQ(why(documented_form(), "sigv4examplebucket", *parse_basic_iso8601("20151230T120000Z")),
            "");
  EXPECT_EQ(why(documented_form(), "sigv4examplebucket", *parse_basic_iso8601("20151230T120001Z")),
            "Invalid according to Policy: Policy expired.");
}

std::string document(const std::string& conditions) {
  return R"({"expiration": "2015-12-30T12:00:00Z", "conditions": [)" + conditions + "]}";
}

TEST(PostPolicy, AppliesAllRangesOfSizes) {
  auto policy = parse_post_policy(
      document(R"(["content-length-range", 1, 10], ["content-length-range", "2", "1000"])"));
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->bytes_min, 2u);
  EXPECT_EQ(policy->bytes_max, 10u);
  policy = parse_post_policy(document(R"(["Content-Length-Range", 0, 18446744073709551615])"));
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->bytes_max, kPostFileBytesMax);
}

TEST(PostPolicy, ComparesListsLikeObjects) {
  const auto policy = parse_post_policy(document(R"(["EQ", "$Acl", "private"])"));
  ASSERT_TRUE(policy);
  EXPECT_TRUE(check_post_policy(*policy, {{"acl", "private"}}, "b", kThen));
  EXPECT_FALSE(check_post_policy(*policy, {{"acl", "private "}}, "b", kThen));
}

TEST(PostPolicy, RejectsMalformedDocuments) {
  std::string many;
  for (size_t i = 0; i <= kPostConditionsMax; ++i)
    many += std::string(i == 0 ? "" : ",") + R"({"a": "b"})";
  for (const std::string& text :
       {std::string(""),
        std::string("{"),
        std::string("[]"),
        std::string("{}"),
        std::string(R"({"expiration": 5, "conditions": []})"),
        std::string(R"({"expiration": "tomorrow", "conditions": []})"),
        std::string(R"({"expiration": "2015-12-30T12:00:00Z"})"),
        std::string(R"({"expiration": "2015-12-30T12:00:00Z", "conditions": {}})"),
        std::string(R"({"expiration": "2015-12-30T12:00:00Z", "conditions": [], "more": 1})"),
        document("5"),
        document("{}"),
        document(R"({"a": "b", "c": "d"})"),
        document(R"({"a": 5})"),
        document(R"(["eq", "$a"])"),
        document(R"([5, "$a", "b"])"),
        document(R"(["like", "$a", "b"])"),
        document(R"(["eq", "a", "b"])"),
        document(R"(["eq", 5, "b"])"),
        document(R"(["eq", "$", "b"])"),
        document(R"(["eq", "$a", 5])"),
        document(R"(["content-length-range", -1, 5])"),
        document(R"(["content-length-range", 1, "x"])"),
        document(R"(["content-length-range", 1.5, 5])"),
        document(many)}) {
    const auto policy = parse_post_policy(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_EQ(policy.error().kind, Kind::invalid);
    EXPECT_TRUE(policy.error().message.starts_with("Invalid Policy: ")) << policy.error().message;
  }
}

}  // namespace
}  // namespace trainyard::api
