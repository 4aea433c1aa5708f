// Tests how requests are authenticated, through the handler without sockets: all kinds of
// signatures, and temporary keys.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "auth/temporary_keys.hpp"
#include "base/text.hpp"
#include "dispatch/testing/test_server.hpp"

namespace trainyard::api {
namespace {

using in_memory::signed_request;
using in_memory::Signing;

struct OpenServer : TestServer {
  OpenServer() { open(); }
};

TEST(Authentication, HasTheServicesTextForEachFault) {
  OpenServer world;
  const auto json_code = [&](net::Request request) {
    return world.send(std::move(request))->code();
  };
  const auto describe = [&](const Signing& by, Instant at) {
    return signed_request("POST", "/", {{"X-Amz-Target", "SageMaker.DescribeTrainingJob"}},
                          R"({"TrainingJobName":"a"})", "sagemaker", at, by);
  };
  EXPECT_EQ(json_code(describe({}, world.clock.now())), "ValidationException");
  EXPECT_EQ(json_code(describe({{"AKIAOTHER", "x", ""}, "eu-west-1"}, world.clock.now())),
            "UnrecognizedClientException");
  EXPECT_EQ(json_code(describe({{"AKIAOWNER", "x", ""}, "eu-west-1"}, world.clock.now())),
            "InvalidSignatureException");
  EXPECT_EQ(json_code(describe({}, world.clock.now() - 16min)), "InvalidSignatureException");
  EXPECT_EQ(json_code(describe({{"AKIAOWNER", "owner-secret", ""}, "../etc"}, world.clock.now())),
            "IncompleteSignatureException");
  auto request = describe({}, world.clock.now());
  request.body += " ";
  EXPECT_EQ(json_code(std::move(request)), "InvalidSignatureException");
  request = describe({}, world.clock.now());
  request.headers.set("Authorization", "");
  EXPECT_EQ(json_code(std::move(request)), "MissingAuthenticationTokenException");
  // The signature is for another service.
  EXPECT_EQ(json_code(signed_request("POST", "/", {{"X-Amz-Target", "SageMaker.ListTrainingJobs"}},
                                     "{}", "logs", world.clock.now())),
            "IncompleteSignatureException");

  const auto s3_code = [&](const Signing& by, Instant at) {
    const std::string body = world.send(signed_request("GET", "/", {}, "", "s3", at, by))->body;
    const auto begin = body.find("<Code>");
    return begin == std::string::npos ? body
                                      : body.substr(begin + 6, body.find("</Code>") - begin - 6);
  };
  EXPECT_EQ(s3_code({{"AKIAOTHER", "x", ""}, "eu-west-1"}, world.clock.now()),
            "InvalidAccessKeyId");
  EXPECT_EQ(s3_code({{"AKIAOWNER", "x", ""}, "eu-west-1"}, world.clock.now()),
            "SignatureDoesNotMatch");
  EXPECT_EQ(s3_code({}, world.clock.now() - 16min), "RequestTimeTooSkewed");
  net::Request anonymous;
  anonymous.method = "GET";
  anonymous.target = "/";
  EXPECT_EQ(world.send(anonymous)->status, 403);
}

TEST(Authentication, RejectsAnUnsignedCopySourceOfAPresignedPut) {
  OpenServer world;
  const auto own = [&](const std::string& method, const std::string& target,
                       const std::string& body) {
    return *world.send(signed_request(method, target, {}, body, "s3", world.clock.now()));
  };
  ASSERT_EQ(own("PUT", "/bucket", "").status, 200);
  ASSERT_EQ(own("PUT", "/bucket/secret", "the secret").status, 200);
  const signing::Keys keys{"AKIAOWNER", "owner-secret", ""};
  const auto presigned = [&](signing::HeaderList headers, const std::string& body) {
    net::Request request;
    request.method = "PUT";
    request.target = signing::presign("PUT", "/bucket/upload", "127.0.0.1:4566", keys,
                                      {"eu-west-1", "s3"}, world.clock.now(), 60s);
    request.headers.add("Host", "127.0.0.1:4566");
    for (auto& [name, value] : headers) request.headers.add(name, value);
    request.body = body;
    return *world.send(std::move(request));
  };
  for (const char* name :
       {"x-amz-copy-source", "X-Amz-Copy-Source", "x-amz-acl", "x-amz-meta-owner"}) {
    const auto reply = presigned({{name, "/bucket/secret"}}, "");
    EXPECT_EQ(reply.status, 403) << reply.body;
    EXPECT_NE(reply.body.find("<Code>AccessDenied</Code><Message>There were headers present in the "
                              "request which were not signed</Message><HeadersNotSigned>" +
                              to_lower(name) + "</HeadersNotSigned>"),
              std::string::npos)
        << reply.body;
    EXPECT_EQ(own("GET", "/bucket/upload", "").status, 404);
  }
  EXPECT_EQ(presigned({{"Content-Type", "text/plain"}}, "mine").status, 200);
  EXPECT_EQ(own("GET", "/bucket/upload", "").body, "mine");
  // In the JSON protocol a header names the operation, so that header must be signed.
  auto request = signed_request("POST", "/", {}, "{}", "sagemaker", world.clock.now());
  request.headers.add("X-Amz-Target", "SageMaker.ListTrainingJobs");
  const auto reply = *world.send(std::move(request));
  EXPECT_EQ(reply.code(), "IncompleteSignatureException");
  EXPECT_EQ(reply.message(), "'x-amz-target' must be a 'SignedHeader' in the AWS Authorization.");
}

// Presigned requests for GetCallerIdentity are given to others as a proof of identity. Their holder
// must not be able to turn them into other requests.
TEST(Authentication, RejectsAnotherOperationInAHeaderOfAPresignedQuery) {
  OpenServer world;
  const signing::Keys keys{"AKIAOWNER", "owner-secret", ""};
  for (const auto& [scope, operation] :
       {std::pair("sts", "sts.GetSessionToken"), std::pair("iam", "iam.CreateAccessKey"),
        std::pair("sns", "sns.ListTopics")}) {
    net::Request request;
    request.method = "POST";
    request.target = signing::presign("POST", "/", "127.0.0.1:4566", keys, {"eu-west-1", scope},
                                      world.clock.now(), 60s);
    request.headers.add("Host", "127.0.0.1:4566");
    request.headers.add("X-Amz-Target", operation);
    const auto reply = *world.send(std::move(request));
    EXPECT_EQ(reply.status / 100, 4) << operation << ": " << reply.body;
    EXPECT_NE(reply.body.find("x-amz-target"), std::string::npos) << reply.body;
  }
  // A signature for one service does not call another.
  const auto other = *world.send(signed_request("POST", "/", {{"X-Amz-Target", "iam.ListUsers"}},
                                                "{}", "sts", world.clock.now()));
  EXPECT_EQ(other.status / 100, 4) << other.body;
  EXPECT_NE(other.body.find("scoped to correct service: 'iam'"), std::string::npos) << other.body;
}

TEST(Authentication, UsesTheHashOfTheBodyIfTheClientSendsNone) {
  // A request that botocore signed as for every service except S3 (signing/vectors.json).
  OpenServer world;
  std::ifstream file("../../foundation/signing/vectors.json");
  const Json vectors = *parse_json(std::string{std::istreambuf_iterator<char>(file), {}});
  for (const auto& one : vectors["cases"]) {
    if (one["name"] != "post-form") continue;
    world.settings.keys.push_back({"AKIDEXAMPLE", vectors["secret"]});
    world.api = make_api(world.settings, world.services);
    net::Request request;
    request.method = one["method"];
    request.target = one["target"];
    request.body = one["body"];
    for (const auto& field : one["headers"]) request.headers.add(field[0], field[1]);
    ASSERT_FALSE(request.headers.has("x-amz-content-sha256"));
    EXPECT_EQ(world.send(request)->status, 200);
    request.body += "&More=1";
    EXPECT_EQ(world.send(request)->status, 403);
    return;
  }
  FAIL() << "vectors.json lacks post-form";
}

TEST(TemporaryKeys, CarryTheirRoleUntilTheyExpire) {
  OpenServer world;
  const auto keys = issue_keys(world.settings.temporary_key_secret,
                               {"arn:aws:iam::123456789012:role/path/Train", "mnist-1"},
                               world.clock.now(), 1h, world.random);
  Signing role{{keys.access_key_id, keys.secret_access_key, keys.session_token}, "us-east-1"};
  auto reply = world.form("Action=GetCallerIdentity&Version=2011-06-15", "sts", role);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.body.find("arn:aws:sts::123456789012:assumed-role/Train/mnist-1"),
            std::string::npos)
      << reply.body;
  world.clock.advance(1h);
  reply = world.form("Action=GetCallerIdentity&Version=2011-06-15", "sts", role);
  EXPECT_EQ(reply.status, 403);
  EXPECT_NE(reply.body.find("<Code>ExpiredToken</Code>"), std::string::npos) << reply.body;
  EXPECT_EQ(world.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", role).code(),
            "ExpiredTokenException");
  role.keys.session_token[10] ^= 1;
  EXPECT_EQ(world.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", role).code(),
            "UnrecognizedClientException");
}

}  // namespace
}  // namespace trainyard::api
