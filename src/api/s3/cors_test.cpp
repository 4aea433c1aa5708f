#include "s3/cors.hpp"

#include <gtest/gtest.h>

#include <map>

namespace trainyard::api::s3 {
namespace {

using Texts = std::vector<std::string>;
using shapes::s3::CORSConfiguration;
using shapes::s3::CORSRule;

CORSRule rule(Texts origins, Texts methods, Texts headers = {}) {
  CORSRule out;
  out.allowed_origins = std::move(origins);
  out.allowed_methods = std::move(methods);
  out.allowed_headers = std::move(headers);
  return out;
}

std::map<std::string, std::string> answer(const CORSConfiguration& cors, const CorsRequest& request,
                                          bool preflight = false) {
  const CORSRule* found = find_rule(cors, request);
  if (!found) return {};
  const auto headers = cors_headers(*found, request, preflight);
  return {headers.begin(), headers.end()};
}

TEST(CorsRules, NeedOriginMethodAndEveryHeader) {
  CORSConfiguration cors;
  cors.cors_rules = {{rule({"https://*.example.org"}, {"GET"}, {"x-amz-*", "Range"})}};
  const auto allowed = [&](std::string_view origin, std::string_view method,
                           std::string_view headers = "") {
    return find_rule(cors, {origin, method, headers}) != nullptr;
  };
  EXPECT_TRUE(allowed("https://a.example.org", "GET"));
  EXPECT_TRUE(allowed("https://a.example.org", "GET", "X-Amz-Date, range"));
  EXPECT_FALSE(allowed("https://a.example.org", "GET", "x-amz-date, authorization"));
  EXPECT_FALSE(allowed("https://a.example.org", "PUT"));
  EXPECT_FALSE(allowed("http://a.example.org", "GET"));
  EXPECT_FALSE(allowed("https://A.EXAMPLE.ORG", "GET")) << "origins have a case";
  EXPECT_FALSE(allowed("https://.example.or", "GET"));
  EXPECT_FALSE(allowed("", "GET"));
  EXPECT_FALSE(find_rule({}, {"https://a", "GET", ""}));
}

TEST(CorsRules, ApplyTheFirstRuleThatAllowsTheRequest) {
  CORSConfiguration cors;
  cors.cors_rules = {{rule({"https://one"}, {"GET"}), rule({"*"}, {"GET", "HEAD"})}};
  cors.cors_rules->at(0).max_age_seconds = 60;
  cors.cors_rules->at(0).expose_headers = Texts{"ETag", "x-amz-request-id"};
  const auto one = answer(cors, {"https://one", "GET", ""});
  EXPECT_EQ(one.at("Access-Control-Allow-Origin"), "https://one");
  EXPECT_EQ(one.at("Access-Control-Allow-Credentials"), "true");
  EXPECT_EQ(one.at("Access-Control-Max-Age"), "60");
  EXPECT_EQ(one.at("Access-Control-Expose-Headers"), "ETag, x-amz-request-id");
  const auto other = answer(cors, {"https://two", "HEAD", ""});
  EXPECT_EQ(other.at("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(other.at("Access-Control-Allow-Methods"), "GET, HEAD");
  EXPECT_FALSE(other.contains("Access-Control-Allow-Credentials"));
  EXPECT_TRUE(answer(cors, {"https://two", "DELETE", ""}).empty());
}

TEST(CorsRules, AllowTheHeadersOfAPreflight) {
  CORSConfiguration cors;
  cors.cors_rules = {{rule({"*"}, {"PUT"}, {"*"})}};
  const CorsRequest request{"https://a", "PUT", "Content-MD5,X-Amz-Date"};
  EXPECT_EQ(answer(cors, request, true).at("Access-Control-Allow-Headers"),
            "content-md5, x-amz-date");
  EXPECT_FALSE(answer(cors, request).contains("Access-Control-Allow-Headers"));
}

TEST(CorsRules, MatchPrefixAndSuffixWithoutOverlap) {
  CORSConfiguration cors;
  cors.cors_rules = {{rule({"ab*ba"}, {"GET"})}};
  EXPECT_TRUE(find_rule(cors, {"abba", "GET", ""}));
  EXPECT_FALSE(find_rule(cors, {"aba", "GET", ""}));
}

}  // namespace
}  // namespace trainyard::api::s3
