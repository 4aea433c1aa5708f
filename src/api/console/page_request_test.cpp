#include "console/page_request.hpp"

#include <gtest/gtest.h>

namespace trainyard::api::console {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

net::RequestHead head(const std::string& method, const std::string& target,
                      const Fields& fields = {}) {
  net::RequestHead out;
  out.method = method;
  out.target = target;
  for (const auto& [name, value] : fields) out.headers.add(name, value);
  return out;
}

Page page(const std::string& method, const std::string& target, const Fields& fields = {}) {
  const auto request = head(method, target, fields);
  return read_page_request(request).page;
}

TEST(PageRequest, ClassifiesPaths) {
  EXPECT_EQ(page("GET", "/console"), Page::document);
  EXPECT_EQ(page("GET", "/console/jobs/mnist-1?region=eu-west-1"), Page::document);
  EXPECT_EQ(page("HEAD", "/console/"), Page::document);
  EXPECT_EQ(page("GET", "/console/session"), Page::session);
  EXPECT_EQ(page("DELETE", "/console/session"), Page::session);
  EXPECT_EQ(page("GET", "/console/events?region=r"), Page::events);
  EXPECT_EQ(page("POST", "/console/rights?region=r"), Page::rights);
  EXPECT_EQ(page("GET", "/console/rights"), Page::unknown);
  const auto call = head("POST", "/console/api/trainyard/ListJobs?region=r");
  EXPECT_EQ(read_page_request(call).page, Page::call);
  EXPECT_EQ(read_page_request(call).service, "trainyard");
  EXPECT_EQ(read_page_request(call).operation, "ListJobs");
}

TEST(PageRequest, LeavesOtherPathsToTheAPI) {
  for (const char* target : {"/", "/consoles", "/consoles/a", "/console-2/x", "/bucket/console"})
    EXPECT_EQ(page("GET", target), Page::none) << target;
}

TEST(PageRequest, LeavesABucketOfThatNameToS3) {
  const Fields by_header = {
      {"Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20261120/us-east-1/s3/aws4_request, .."}};
  EXPECT_EQ(page("GET", "/console", by_header), Page::none);
  EXPECT_EQ(page("GET", "/console/session", by_header), Page::none);
  EXPECT_EQ(page("POST", "/console/session", by_header), Page::none);
  EXPECT_EQ(page("GET", "/console/key?X-Amz-Credential=AKIA%2F20261120"), Page::none);
  EXPECT_EQ(page("GET", "/console/key?AWSAccessKeyId=AKIA"), Page::none);
  EXPECT_EQ(page("PUT", "/console/key"), Page::none);
  EXPECT_EQ(page("OPTIONS", "/console/key"), Page::none);
  EXPECT_EQ(page("POST", "/console"), Page::none) << "an upload by a form";
  EXPECT_EQ(page("POST", "/console/session", {{"X-Amz-Target", "Trainyard.ListJobs"}}), Page::none);
}

TEST(PageRequest, AcceptsTheSignedRequestThatSignsIn) {
  const Fields fields = {
      {"Authorization",
       "AWS4-HMAC-SHA256 Credential=AKIA/20261120/us-east-1/trainyard/aws4_request, .."}};
  EXPECT_EQ(page("POST", "/console/session", fields), Page::session);
  EXPECT_EQ(page("GET", "/console/session", fields), Page::none);
  EXPECT_EQ(page("POST", "/console/api/trainyard/ListJobs", fields), Page::none);
}

TEST(PageRequest, ReadsItsCookieAmongOthers) {
  EXPECT_EQ(session_cookie(head("GET", "/", {{"Cookie", "a=1; trainyard_console=xyz ;b=2"}})),
            "xyz");
  EXPECT_EQ(session_cookie(head("GET", "/", {{"Cookie", "trainyard_console_2=xyz"}})), "");
  EXPECT_EQ(session_cookie(head("GET", "/")), "");
}

TEST(PageRequest, SetsACookieThatScriptsAndOtherSitesCannotUse) {
  EXPECT_EQ(format_session_cookie("ab", false),
            "trainyard_console=ab; Path=/console; HttpOnly; SameSite=Strict");
  EXPECT_EQ(format_session_cookie("ab", true),
            "trainyard_console=ab; Path=/console; HttpOnly; SameSite=Strict; Secure");
  EXPECT_EQ(format_session_cookie("", false),
            "trainyard_console=; Path=/console; HttpOnly; SameSite=Strict; Max-Age=0");
}

TEST(PageRequest, DistinguishesItsOwnPagesFromOthers) {
  const auto same = [](const Fields& fields, bool tls = false) {
    auto request = head("POST", "/console/session", fields);
    request.headers.add("Host", "yard.lan:4566");
    request.tls = tls;
    return is_same_origin(request);
  };
  EXPECT_TRUE(same({{"Sec-Fetch-Site", "same-origin"}, {"Origin", "http://yard.lan:4566"}}));
  EXPECT_FALSE(same({{"Sec-Fetch-Site", "same-site"}})) << "another port of the same host";
  EXPECT_FALSE(same({{"Sec-Fetch-Site", "cross-site"}}));
  EXPECT_FALSE(same({{"Sec-Fetch-Site", "none"}}));
  EXPECT_TRUE(same({{"Origin", "http://yard.lan:4566"}}));
  EXPECT_TRUE(same({{"Origin", "https://yard.lan:4566"}}, true));
  EXPECT_FALSE(same({{"Origin", "http://yard.lan:8888"}}));
  EXPECT_FALSE(same({{"Origin", "http://yard.lan:4566"}}, true));
  EXPECT_FALSE(same({{"Origin", "null"}}));
  EXPECT_FALSE(same({})) << "no page";
  const auto other = [](const Fields& fields) {
    auto request = head("GET", "/console/events", fields);
    request.headers.add("Host", "yard.lan:4566");
    return is_other_origin(request);
  };
  EXPECT_TRUE(other({{"Sec-Fetch-Site", "same-site"}}));
  EXPECT_TRUE(other({{"Origin", "http://yard.lan:8888"}}));
  EXPECT_FALSE(other({{"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_FALSE(other({{"Sec-Fetch-Site", "none"}})) << "typed by a person";
  EXPECT_FALSE(other({})) << "a page's own GET without TLS";
}

TEST(PageRequest, ReadsParameters) {
  const auto request = head("GET", "/console/events?region=eu-west-1&job=a%2Fb+c&bad=%f");
  EXPECT_EQ(query_value(request, "region"), "eu-west-1");
  EXPECT_EQ(query_value(request, "job"), "a/b c");
  EXPECT_EQ(query_value(request, "bad"), "");
  EXPECT_EQ(query_value(request, "absent"), "");
}

}  // namespace
}  // namespace trainyard::api::console
