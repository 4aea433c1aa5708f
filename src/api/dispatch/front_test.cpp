// Tests decisions by a request's head, before its body: rejection, intake, rates; and the counts of
// requests.
#include <gtest/gtest.h>

#include "dispatch/api.hpp"
#include "dispatch/testing/test_server.hpp"
#include "objects/memory.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::api {
namespace {

using in_memory::signed_request;
using in_memory::Signing;

struct Front : testing::Test, TestServer {
  RequestStatistics statistics;
  RateLimits limits;

  Front() {
    settings.keys = {{"AKIAOWNER", "owner-secret", "owner"}, {"AKIABOB", "bob-secret", "bob"}};
    settings.rate_limits = [this] { return limits; };
    services.statistics = &statistics;
    open();
  }

  net::Request json(const std::string& operation, const Signing& by = {}) {
    return signed_request("POST", "/", {{"X-Amz-Target", "SageMaker." + operation}}, "{}",
                          "sagemaker", clock.now(), by);
  }
  net::Request without(net::Request request, std::string_view name) {
    net::Headers kept;
    for (const auto& [field, value] : request.headers.fields())
      if (field != name) kept.add(field, value);
    request.headers = kept;
    return request;
  }
  net::Request object(const std::string& method, const Signing& by = {}) {
    return signed_request(method, "/bucket/key", {}, "", "s3", clock.now(), by);
  }
};

TEST_F(Front, RejectsByTheHead) {
  const auto refused = [&](const net::Request& request) {
    const auto choice = api->choose(request);
    return choice.refusal ? choice.refusal->status : 0;
  };
  EXPECT_EQ(refused(object("PUT")), 0);
  EXPECT_EQ(refused(without(object("PUT"), "Authorization")), 403);
  EXPECT_EQ(refused(object("PUT", {{"AKIANOBODY", "x", ""}, "eu-west-1"})), 403);
  EXPECT_EQ(refused(object("PUT", {{"AKIAOWNER", "wrong", ""}, "eu-west-1"})), 403);
  EXPECT_EQ(refused(json("ListTrainingJobs")), 0);
  EXPECT_EQ(refused(without(json("ListTrainingJobs"), "Authorization")), 403);
  EXPECT_EQ(refused(json("ListTrainingJobs", {{"AKIANOBODY", "x", ""}, "eu-west-1"})), 403);
  EXPECT_EQ(refused(json("ListTrainingJobs", {{"AKIAOWNER", "wrong", ""}, "eu-west-1"})), 403)
      << "the head has the hash of the body";
}

// Clients usually sign the hash of the body without sending it, so only the body shows that the
// signature is wrong.
TEST_F(Front, RejectsAWrongSignatureWithoutAHashAfterTheBody) {
  const signing::Keys wrong{"AKIAOWNER", "wrong", ""};
  auto request = without(json("ListTrainingJobs", {wrong, "eu-west-1"}), "x-amz-content-sha256");
  const auto choice = api->choose(request);
  EXPECT_FALSE(choice.refusal);
  EXPECT_NE(choice.intake, net::Intake::streamed) << "no thread waits for its body";
  EXPECT_EQ(send(std::move(request))->status, 403);
}

TEST_F(Front, DecompressesNothingBeforeVerifyingTheSignature) {
  // The body is not gzip. Only a client with a valid signature gets an error about it.
  const auto packed = [&](const Signing& by) {
    return send(signed_request(
                    "POST", "/",
                    {{"X-Amz-Target", "SageMaker.ListTrainingJobs"}, {"Content-Encoding", "gzip"}},
                    "no gzip", "sagemaker", clock.now(), by))
        ->status;
  };
  EXPECT_EQ(packed({}), 400);
  EXPECT_EQ(packed({{"AKIAOWNER", "wrong", ""}, "eu-west-1"}), 403);
}

// Signatures for several regions (SigV4a): one of them must be this server's.
TEST_F(Front, AcceptsAsymmetricSignaturesForItsRegions) {
  const auto asymmetric = [&](net::Request request) {
    request.headers.set("Authorization",
                        "AWS4-ECDSA-P256-SHA256 Credential=AKIAOWNER/20261120/s3/aws4_request, "
                        "SignedHeaders=host;x-amz-date;x-amz-region-set, Signature=3045022100");
    request.headers.set("X-Amz-Region-Set", "*");
    return request;
  };
  for (const auto& request : {asymmetric(object("GET")), asymmetric(json("ListTrainingJobs"))}) {
    const auto choice = api->choose(request);
    ASSERT_TRUE(choice.refusal);
    EXPECT_EQ(choice.refusal->status, 400);
    EXPECT_NE(choice.refusal->body.find("'*' does not include a region of this server"),
              std::string::npos)
        << choice.refusal->body;
  }
}

TEST_F(Front, CountsStreamsForTheirUser) {
  EXPECT_EQ(api->choose(object("GET")).tenant, "owner");
  EXPECT_EQ(api->choose(object("GET", {{"AKIABOB", "bob-secret", ""}, "eu-west-1"})).tenant, "bob");
}

TEST_F(Front, ThrottlesPrincipalsInTheFormOfTheProtocol) {
  limits.reads_per_second = 1;
  limits.changes_per_second = 1;
  limits.objects_per_second = 1;
  limits.burst_seconds = 2;
  const Signing bob{{"AKIABOB", "bob-secret", ""}, "eu-west-1"};
  for (int i = 0; i < 2; i++) EXPECT_EQ(send(json("ListTrainingJobs"))->status, 200);
  auto reply = send(json("ListTrainingJobs"));
  EXPECT_EQ(reply->status, 400);
  EXPECT_EQ(reply->code(), "ThrottlingException");
  EXPECT_NE(reply->body.find("Rate exceeded"), std::string::npos);
  EXPECT_EQ(send(json("ListTrainingJobs", bob))->status, 200) << "the rate of another user";
  // Requests with a wrong signature do not count towards the principal's rate.
  for (int i = 0; i < 5; i++)
    send(json("ListTrainingJobs", {{"AKIABOB", "wrong", ""}, "eu-west-1"}));
  EXPECT_EQ(send(json("ListTrainingJobs", bob))->status, 200);

  for (int i = 0; i < 2; i++) EXPECT_EQ(send(object("GET"))->status, 404);
  reply = send(object("GET"));
  EXPECT_EQ(reply->status, 503);
  EXPECT_NE(reply->body.find("<Code>SlowDown</Code>"), std::string::npos) << reply->body;

  const auto describe = [&] {
    return send(
        signed_request("POST", "/v1/describejobqueues", {}, "{}", "batch", clock.now(), bob));
  };
  reply = describe();
  for (int i = 0; i < 3 && reply->status != 429; i++) reply = describe();
  EXPECT_EQ(reply->status, 429);
  EXPECT_EQ(reply->headers.get("x-amzn-errortype"), "TooManyRequestsException");

  PrometheusText text;
  statistics.write(text);
  EXPECT_NE(text.text().find("trainyard_requests_throttled_total 3\n"), std::string::npos)
      << text.text();
}

TEST_F(Front, CountsRequestsByOperationAndStatus) {
  send(json("ListTrainingJobs"));
  send(json("ListTrainingJobs"));
  send(object("GET"));
  send(without(object("PUT"), "Authorization"));
  PrometheusText text;
  statistics.write(text);
  for (const char* line :
       {"trainyard_requests_total{service=\"sagemaker\",operation=\"ListTrainingJobs\",status="
        "\"200\"} 2\n",
        "trainyard_requests_total{service=\"s3\",operation=\"GetObject\",status=\"404\"} 1\n",
        "trainyard_requests_total{service=\"unknown\",operation=\"unknown\",status=\"403\"} 1\n",
        "trainyard_request_seconds_count{service=\"sagemaker\",operation=\"ListTrainingJobs\"} "
        "2\n"})
    EXPECT_NE(text.text().find(line), std::string::npos) << line << text.text();
}

}  // namespace
}  // namespace trainyard::api
