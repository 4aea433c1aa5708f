#include "dispatch/not_ready.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "dispatch/testing/in_memory.hpp"

namespace trainyard::api {
namespace {

net::Response answer(const std::string& service, signing::HeaderList headers,
                     const std::string& method = "POST", const std::string& target = "/") {
  return not_ready(
      in_memory::signed_request(method, target, std::move(headers), "", service, Instant{}),
      "id-1");
}

TEST(NotReady, Is503InEachProtocolsOwnForm) {
  const auto json = answer("sagemaker", {{"X-Amz-Target", "SageMaker.ListTrainingJobs"}});
  EXPECT_EQ(json.status, 503);
  EXPECT_NE(json.body.find("\"__type\":\"ServiceUnavailable\""), std::string::npos) << json.body;
  EXPECT_TRUE(parse_json(json.body)) << json.body;

  const auto query = answer("sts", {{"Content-Type", "application/x-www-form-urlencoded"}});
  EXPECT_EQ(query.status, 503);
  EXPECT_NE(query.body.find("<Code>ServiceUnavailable</Code>"), std::string::npos) << query.body;

  const auto batch = answer("batch", {}, "POST", "/v1/describejobs");
  EXPECT_EQ(batch.status, 503);
  EXPECT_TRUE(parse_json(batch.body)) << batch.body;

  const auto s3 = answer("s3", {}, "GET", "/bucket/key");
  EXPECT_EQ(s3.status, 503);
  EXPECT_TRUE(s3.body.starts_with("<?xml")) << s3.body;
  EXPECT_NE(s3.body.find("<Code>ServiceUnavailable</Code>"), std::string::npos) << s3.body;

  for (const auto& each : {json, query, batch, s3}) EXPECT_EQ(each.headers.get("Retry-After"), "1");
}

TEST(NotReady, AnswersRequestsForUnknownServices) {
  net::RequestHead head;
  head.method = "GET";
  head.target = "/";
  EXPECT_EQ(not_ready(head, "id-1").status, 503);
}

}  // namespace
}  // namespace trainyard::api
