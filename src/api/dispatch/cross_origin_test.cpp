#include "dispatch/cross_origin.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "operations/testing/fake_control.hpp"

namespace trainyard::api {
namespace {

struct CrossOriginTest : testing::Test {
  TestClock clock{in_memory::kStart};
  in_memory::PlainControl control{clock};
  s3::BucketSettings settings{control};
  CrossOrigin cross_origin{control};

  void SetUp() override { put("data"); }
  void put(const std::string& bucket) {
    shapes::s3::CORSConfiguration cors;
    shapes::s3::CORSRule rule;
    rule.allowed_origins = std::vector<std::string>{"https://a"};
    rule.allowed_methods = std::vector<std::string>{"GET"};
    cors.cors_rules = {{rule}};
    const shapes::Shape& shape = *shapes::s3::PutBucketCors::shape().input->payload->shape;
    ASSERT_TRUE(settings.put({}, bucket, s3::Setting::cors, shape, &cors));
  }
  static net::RequestHead head(const std::string& method, const std::string& target,
                               const std::string& origin, const std::string& requested = "") {
    net::RequestHead out;
    out.method = method;
    out.target = target;
    if (!origin.empty()) out.headers.add("Origin", origin);
    if (!requested.empty()) out.headers.add("Access-Control-Request-Method", requested);
    return out;
  }
  std::string preflight(const net::RequestHead& head) {
    const auto answer = cross_origin.answer_preflight(head);
    if (!answer) return answer.failure(shapes::s3::kService).code;
    return std::string((*answer).headers.get("access-control-allow-origin"));
  }
};

TEST_F(CrossOriginTest, AnswersPreflightsByTheRulesOfTheBucket) {
  EXPECT_TRUE(CrossOrigin::is_preflight(head("OPTIONS", "/data/key", "")));
  EXPECT_EQ(preflight(head("OPTIONS", "/data/a%20key?x=y", "https://a", "GET")), "https://a");
  EXPECT_EQ(preflight(head("OPTIONS", "/data", "https://a", "PUT")), "AccessForbidden");
  EXPECT_EQ(preflight(head("OPTIONS", "/data", "https://b", "GET")), "AccessForbidden");
  EXPECT_EQ(preflight(head("OPTIONS", "/other/key", "https://a", "GET")), "AccessForbidden");
  EXPECT_EQ(preflight(head("OPTIONS", "/", "https://a", "GET")), "AccessForbidden");
  EXPECT_EQ(preflight(head("OPTIONS", "/%zz", "https://a", "GET")), "AccessForbidden");
  EXPECT_EQ(preflight(head("OPTIONS", "/data", "", "GET")), "BadRequest");
  EXPECT_EQ(preflight(head("OPTIONS", "/data", "https://a")), "BadRequest");
}

TEST_F(CrossOriginTest, AddsHeadersForAllowedPagesOnly) {
  const auto added = [&](const net::RequestHead& head) {
    net::Response response;
    cross_origin.add_to(response, head);
    return std::string(response.headers.get("access-control-allow-origin"));
  };
  EXPECT_EQ(added(head("GET", "/data/key", "https://a")), "https://a");
  EXPECT_EQ(added(head("PUT", "/data/key", "https://a")), "");
  EXPECT_EQ(added(head("GET", "/data/key", "https://b")), "");
  EXPECT_EQ(added(head("GET", "/other/key", "https://a")), "");
  EXPECT_TRUE(cross_origin.headers_for(head("GET", "/data/key", "")).empty());
}

TEST_F(CrossOriginTest, ParsesTheRulesOnceUntilTheyChange) {
  const auto first = cross_origin.rules_of("data");
  ASSERT_TRUE(first);
  put("other");  // another record of the ledger
  EXPECT_EQ(cross_origin.rules_of("data"), first);
  put("data");
  const auto second = cross_origin.rules_of("data");
  ASSERT_TRUE(second);
  EXPECT_NE(second, first);
  ASSERT_TRUE(settings.remove("data", s3::Setting::cors));
  EXPECT_FALSE(cross_origin.rules_of("data"));
  EXPECT_EQ(cross_origin.parsed(), 0u);
}

TEST_F(CrossOriginTest, KeepsTheRulesOfABoundedNumberOfBuckets) {
  for (size_t i = 0; i < kParsedCorsMax + 3; ++i) {
    const std::string bucket = "bucket-" + std::to_string(i);
    EXPECT_FALSE(cross_origin.rules_of(bucket)) << "buckets without rules are not kept";
    put(bucket);
    EXPECT_TRUE(cross_origin.rules_of(bucket));
    EXPECT_LE(cross_origin.parsed(), kParsedCorsMax);
  }
  EXPECT_EQ(cross_origin.parsed(), 3u);
}

}  // namespace
}  // namespace trainyard::api
