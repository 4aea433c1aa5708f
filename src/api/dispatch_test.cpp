// Whole requests through the handler: routing, authentication, decoding, answers. No sockets.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "api/auth/temporary_keys.hpp"
#include "api/in_memory.hpp"
#include "api/operations/operations.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "host/temporary_directory.hpp"
#include "objects/memory.hpp"

namespace trainyard::api {
namespace {

using in_memory::hand_over;
using in_memory::signed_request;
using in_memory::Signing;

struct World {
  in_memory::SetClock clock;
  SeededRandom random{7};
  host::TemporaryDirectory directory;
  in_memory::PlainControl control{clock};
  std::unique_ptr<observe::Logs> logs = *observe::open_logs(directory.path() + "/logs", clock);
  std::unique_ptr<observe::Metrics> metrics = *observe::open_metrics(directory.path() + "/metrics");
  std::unique_ptr<objects::Objects> objects = objects::make_memory(clock, random);
  Settings settings{.account = "123456789012",
                    .keys = {{"AKIAOWNER", "owner-secret"}},
                    .temporary_key_secret = std::string(32, 's'),
                    .body_bytes_max = 100'000,
                    .find_image = [](const std::string& name) -> Result<domain::Image> {
                      if (name == "python") return domain::Image{};
                      return not_found("there is no such image here; there are: python");
                    }};
  Services services{control, *logs, *metrics, *objects, clock, random};
  std::unique_ptr<host::Handler> api = make_api(settings, services);

  std::shared_ptr<in_memory::Reply> send(host::Request request) {
    return hand_over(*api, std::move(request));
  }

  in_memory::Reply json(const std::string& target, const std::string& body,
                        const std::string& service = "sagemaker", const Signing& by = {}) {
    return *send(signed_request("POST", "/",
                                {{"X-Amz-Target", target}, {"Content-Type", "application/x-amz-json-1.1"}},
                                body, service, clock.at, by));
  }
  in_memory::Reply form(const std::string& body, const std::string& service = "sts", const Signing& by = {}) {
    return *send(signed_request("POST", "/",
                                {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}}, body,
                                service, clock.at, by));
  }
};

std::string create_body(const std::string& name, const std::string& more = "") {
  return R"({"TrainingJobName":")" + name +
         R"(","AlgorithmSpecification":{"TrainingImage":"python","TrainingInputMode":"File"},"RoleArn":"arn:aws:iam::123456789012:role/Train",)" +
         R"("OutputDataConfig":{"S3OutputPath":"s3://models/"},"ResourceConfig":{"InstanceType":"ml.m5.large","InstanceCount":2,"VolumeSizeInGB":5},)" +
         R"("StoppingCondition":{"MaxRuntimeInSeconds":600})" + more + "}";
}

TEST(Dispatch, CallerIdentityInTheQueryProtocol) {
  World world;
  const auto reply = world.form("Action=GetCallerIdentity&Version=2011-06-15");
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.body.find("<Arn>arn:aws:sts::123456789012:assumed-role/TrainyardOwner/owner</Arn>"),
            std::string::npos)
      << reply.body;
  EXPECT_NE(reply.body.find("<Account>123456789012</Account>"), std::string::npos);
  const std::string id(reply.headers.get("x-amzn-requestid"));
  EXPECT_EQ(id.size(), 36u);
  EXPECT_NE(reply.body.find("<RequestId>" + id + "</RequestId>"), std::string::npos);
}

TEST(Dispatch, UnknownOperationsAre400InEveryProtocol) {
  World world;
  auto reply = world.json("SageMaker.CreateUnicorn", "{}");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.code(), "UnknownOperationException");
  EXPECT_EQ(reply.headers.get("x-amzn-errortype"), "UnknownOperationException");
  EXPECT_FALSE(reply.headers.get("x-amzn-requestid").empty());
  reply = world.json("Unicorns.Create", "{}");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.code(), "UnknownOperationException");
  reply = world.form("Action=AssumeUnicorn&Version=2011-06-15");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("<Code>UnknownOperationException</Code>"), std::string::npos) << reply.body;
  reply = world.form("Action=Nothing", "unicorns");
  EXPECT_EQ(reply.status, 400);
  reply = *world.send(signed_request("GET", "/bucket?acl", {}, "", "s3", world.clock.at));
  EXPECT_EQ(reply.status, 501);
  EXPECT_NE(reply.body.find("<Code>NotImplemented</Code>"), std::string::npos) << reply.body;
  reply = *world.send(signed_request("POST", "/service/GraniteServiceVersion20100801/operation/ListMetrics",
                                     {{"smithy-protocol", "rpc-v2-cbor"}}, "", "monitoring", world.clock.at));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.code(), "UnknownOperationException");
}

TEST(Authentication, EachFaultInItsServicesWords) {
  World world;
  const auto json_code = [&](host::Request request) { return world.send(std::move(request))->code(); };
  const auto describe = [&](const Signing& by, Instant at) {
    return signed_request("POST", "/", {{"X-Amz-Target", "SageMaker.DescribeTrainingJob"}},
                          R"({"TrainingJobName":"a"})", "sagemaker", at, by);
  };
  EXPECT_EQ(json_code(describe({}, world.clock.at)), "ValidationException");
  EXPECT_EQ(json_code(describe({{"AKIAOTHER", "x", ""}, "eu-west-1"}, world.clock.at)),
            "UnrecognizedClientException");
  EXPECT_EQ(json_code(describe({{"AKIAOWNER", "x", ""}, "eu-west-1"}, world.clock.at)),
            "InvalidSignatureException");
  EXPECT_EQ(json_code(describe({}, world.clock.at - 16min)), "InvalidSignatureException");
  EXPECT_EQ(json_code(describe({{"AKIAOWNER", "owner-secret", ""}, "../etc"}, world.clock.at)),
            "IncompleteSignatureException");
  auto request = describe({}, world.clock.at);
  request.body += " ";
  EXPECT_EQ(json_code(std::move(request)), "InvalidSignatureException");
  request = describe({}, world.clock.at);
  request.headers.set("Authorization", "");
  EXPECT_EQ(json_code(std::move(request)), "MissingAuthenticationTokenException");
  // Signed for another service than the one it is sent to.
  EXPECT_EQ(json_code(signed_request("POST", "/", {{"X-Amz-Target", "SageMaker.ListTrainingJobs"}}, "{}",
                                     "logs", world.clock.at)),
            "IncompleteSignatureException");

  const auto s3_code = [&](const Signing& by, Instant at) {
    const std::string body = world.send(signed_request("GET", "/", {}, "", "s3", at, by))->body;
    const auto begin = body.find("<Code>");
    return begin == std::string::npos ? body : body.substr(begin + 6, body.find("</Code>") - begin - 6);
  };
  EXPECT_EQ(s3_code({{"AKIAOTHER", "x", ""}, "eu-west-1"}, world.clock.at), "InvalidAccessKeyId");
  EXPECT_EQ(s3_code({{"AKIAOWNER", "x", ""}, "eu-west-1"}, world.clock.at), "SignatureDoesNotMatch");
  EXPECT_EQ(s3_code({}, world.clock.at - 16min), "RequestTimeTooSkewed");
  host::Request anonymous;
  anonymous.method = "GET";
  anonymous.target = "/";
  EXPECT_EQ(world.send(anonymous)->status, 403);
}

TEST(Authentication, AClientThatStatesNoHashSignsTheBodys) {
  // botocore's way with every service but S3: a request that it signed (signing/vectors.json).
  World world;
  std::ifstream file("../signing/vectors.json");
  const Json vectors = *parse_json(std::string{std::istreambuf_iterator<char>(file), {}});
  for (const auto& one : vectors["cases"]) {
    if (one["name"] != "post-form") continue;
    world.settings.keys.push_back({"AKIDEXAMPLE", vectors["secret"]});
    world.api = make_api(world.settings, world.services);
    host::Request request;
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
  World world;
  const auto keys =
      issue_keys(world.settings.temporary_key_secret,
                 {"arn:aws:iam::123456789012:role/path/Train", "mnist-1"}, world.clock.at, 1h, world.random);
  Signing role{{keys.access_key_id, keys.secret_access_key, keys.session_token}, "us-east-1"};
  auto reply = world.form("Action=GetCallerIdentity&Version=2011-06-15", "sts", role);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.body.find("arn:aws:sts::123456789012:assumed-role/Train/mnist-1"), std::string::npos)
      << reply.body;
  world.clock.at += 1h;
  reply = world.form("Action=GetCallerIdentity&Version=2011-06-15", "sts", role);
  EXPECT_EQ(reply.status, 403);
  EXPECT_NE(reply.body.find("<Code>ExpiredToken</Code>"), std::string::npos) << reply.body;
  EXPECT_EQ(world.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", role).code(),
            "ExpiredTokenException");
  role.keys.session_token[10] ^= 1;
  EXPECT_EQ(world.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", role).code(),
            "UnrecognizedClientException");
}

TEST(TrainingJobs, CreateThenDescribe) {
  World world;
  auto reply = world.json("SageMaker.CreateTrainingJob", create_body("mnist-1"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["TrainingJobArn"], "arn:aws:sagemaker:eu-west-1:123456789012:training-job/mnist-1");
  reply = world.json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"mnist-1"})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json job = reply.json();
  EXPECT_EQ(job["TrainingJobStatus"], "InProgress");
  EXPECT_EQ(job["SecondaryStatus"], "Starting");
  EXPECT_EQ(job["OutputDataConfig"],
            Json({{"KmsKeyId", ""}, {"S3OutputPath", "s3://models/"}, {"CompressionType", "GZIP"}}));
  EXPECT_EQ(job["ModelArtifacts"]["S3ModelArtifacts"], "s3://models/mnist-1/output/model.tar.gz");
  EXPECT_EQ(job["HyperParameters"], Json::object());
  EXPECT_EQ(job["CreationTime"], 1795167900);
  EXPECT_EQ(job["SecondaryStatusTransitions"][0]["StatusMessage"], "Starting the training job.");
  EXPECT_EQ(world.json("SageMaker.CreateTrainingJob", create_body("mnist-1")).code(), "ResourceInUse");
  // Names are per region.
  EXPECT_EQ(world
                .json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"mnist-1"})", "sagemaker",
                      {{"AKIAOWNER", "owner-secret", ""}, "us-east-1"})
                .message(),
            "Requested resource not found.");
}

TEST(TrainingJobs, CreateMayAnswerLater) {
  World world;
  world.control.hold = true;
  auto reply = world.send(signed_request("POST", "/", {{"X-Amz-Target", "SageMaker.CreateTrainingJob"}},
                                         create_body("later"), "sagemaker", world.clock.at));
  EXPECT_FALSE(reply->answered);
  ASSERT_EQ(world.control.held.size(), 1u);
  world.control.held[0]();
  world.control.held.clear();
  EXPECT_TRUE(reply->answered);
  EXPECT_EQ(reply->status, 200) << reply->body;
}

TEST(TrainingJobs, AllViolationsInOneMessage) {
  World world;
  const auto reply = world.json(
      "SageMaker.CreateTrainingJob",
      R"({"TrainingJobName":"-bad-","RoleArn":"x","OutputDataConfig":{},"AlgorithmSpecification":{"TrainingInputMode":"Fast"},)"
      R"("InputDataConfig":[{"ChannelName":"a b","DataSource":{}}],"HyperParameters":{"k":")" +
          std::string(2501, 'x') + R"("}})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.code(), "ValidationException");
  const std::string text = reply.message();
  EXPECT_TRUE(text.find("validation errors detected: ") == 2 ||
              text.find("validation errors detected: ") == 3)
      << text;
  for (const std::string_view part :
       {"Value '-bad-' at 'trainingJobName' failed to satisfy constraint: Member must satisfy regular "
        "expression pattern: ",
        "Value 'x' at 'roleArn' failed to satisfy constraint: Member must have length greater than or equal "
        "to 20",
        "Value null at 'outputDataConfig.s3OutputPath' failed to satisfy constraint: Member must not be null",
        "Value 'Fast' at 'algorithmSpecification.trainingInputMode' failed to satisfy constraint: Member "
        "must satisfy enum value set: [",
        "Value 'a b' at 'inputDataConfig.1.member.channelName' failed to satisfy constraint: ",
        "at 'hyperParameters' failed to satisfy constraint: Map value must satisfy constraint: [Member must "
        "have length less than or equal to 2500"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(TrainingJobs, OneViolation) {
  World world;
  EXPECT_EQ(world.json("SageMaker.DescribeTrainingJob", "{}").message(),
            "1 validation error detected: Value null at 'trainingJobName' failed to satisfy constraint: "
            "Member must not be null");
}

TEST(Bodies, WhatIsNoJsonIsASerializationException) {
  World world;
  for (const std::string body :
       {"{", "[1]", R"({"TrainingJobName":5})", R"({"TrainingJobName":{}})", "\xff\xfe", "nul",
        R"({"MaxResults":"1"})", R"({"CreationTimeAfter":true})", R"({"CreationTimeAfter":1e300})"}) {
    const auto reply = world.json("SageMaker.ListTrainingJobs", body);
    const bool named = body.find("TrainingJobName") != std::string::npos;
    if (named) {
      EXPECT_EQ(world.json("SageMaker.DescribeTrainingJob", body).code(), "SerializationException") << body;
    } else {
      EXPECT_EQ(reply.code(), "SerializationException") << body;
      EXPECT_EQ(reply.status, 400);
    }
  }
  EXPECT_EQ(world.json("SageMaker.ListTrainingJobs", std::string(5000, '[')).code(),
            "SerializationException");
}

TEST(Log, TheRequestIdStandsInTheServersLine) {
  World world;
  std::vector<std::string> lines;
  set_log([&](Level, std::string_view line) { lines.emplace_back(line); }, world.clock, Level::info);
  const auto reply = world.json("SageMaker.ListTrainingJobs", "{}");
  set_log({}, world.clock, Level::warning);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("api: ListTrainingJobs"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("request=" + std::string(reply.headers.get("x-amzn-requestid"))), std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find("region=eu-west-1"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("status=200"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace trainyard::api
