// Tests the rights of principals other than the owner by whole requests: of a job's own keys,
// sessions that expire with their attempt, and users and roles with policies.
#include <gtest/gtest.h>

#include "auth/access_table.hpp"
#include "auth/job_policy.hpp"
#include "base/text.hpp"
#include "dispatch/testing/tenants.hpp"
#include "shapes/services.hpp"

namespace trainyard::api {
namespace {

using in_memory::signed_request;
using in_memory::Signing;

std::string training_job(const std::string& name, const std::string& role = kTrainer) {
  return R"({"TrainingJobName":")" + name +
         R"(","AlgorithmSpecification":{"TrainingImage":"python","TrainingInputMode":"File"},"RoleArn":")" +
         role +
         R"(","InputDataConfig":[{"ChannelName":"train","DataSource":{"S3DataSource":{"S3DataType":"S3Prefix","S3Uri":"s3://bob/"}}}],)"
         R"("OutputDataConfig":{"S3OutputPath":"s3://models/"},"ResourceConfig":{"InstanceType":"ml.m5.large","InstanceCount":1,"VolumeSizeInGB":5},)"
         R"("StoppingCondition":{"MaxRuntimeInSeconds":600}})";
}

std::string text_between(const std::string& text, const std::string& begin,
                         const std::string& end) {
  const auto at = text.find(begin);
  if (at == std::string::npos) return "";
  const auto from = at + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

Signing credentials(const in_memory::Reply& reply) {
  return {{text_between(reply.body, "<AccessKeyId>", "<"),
           text_between(reply.body, "<SecretAccessKey>", "<"),
           text_between(reply.body, "<SessionToken>", "<")},
          "eu-west-1"};
}

std::string assume(const std::string& role, const std::string& more = "") {
  return "Action=AssumeRole&Version=2011-06-15&RoleSessionName=chain&RoleArn=" +
         percent_encode("arn:aws:iam::123456789012:role/" + role) + more;
}

TEST(AccessTable, HasALineForEachOperation) {
  const AccessTable table;
  size_t operations = 0;
  for (const shapes::Service* service : all_services())
    for (const auto& operation : service->operations) {
      EXPECT_TRUE(table.has(operation))
          << service->name << " " << operation.name << " has no line in api/auth/access_table.cpp";
      ++operations;
    }
  EXPECT_GT(operations, 100u);
}

TEST(JobKeys, ReachTheJobsOwnChannelsOutputsLogsAndMetrics) {
  TestTenants tenants;
  const Signing job = tenants.keys_of("mnist-1");
  EXPECT_EQ(tenants.s3("GET", "/data/train/part-0", "", job).body, "bytes");
  EXPECT_EQ(tenants.s3("HEAD", "/data/train/part-0", "", job).status, 200);
  EXPECT_EQ(tenants.s3("GET", "/data?list-type=2&prefix=train/", "", job).status, 200);
  EXPECT_EQ(tenants.s3("PUT", "/models/mnist-1/output/model.tar.gz", "model", job).status, 200);
  EXPECT_EQ(tenants.s3("DELETE", "/models/mnist-1/output/a", "", job).status, 204);
  EXPECT_EQ(tenants.s3("PUT", "/models/checkpoints/mnist-1/step-1", "step", job).status, 200);
  EXPECT_EQ(tenants.s3("GET", "/models/checkpoints/mnist-1/step-1", "", job).body, "step");
  EXPECT_EQ(tenants.s3("GET", "/models?list-type=2&prefix=checkpoints/mnist-1/", "", job).status,
            200);
  EXPECT_EQ(tenants.s3("PUT", "/models/board/mnist-1/tensorboard-output/e", "e", job).status, 200);
  EXPECT_EQ(tenants.s3("PUT", "/models/board/mnist-1/other", "e", job).status, 403);
  EXPECT_EQ(tenants.s3("PUT", "/models/board/other/tensorboard-output/e", "e", job).status, 403);
  EXPECT_EQ(tenants.s3("POST", "/models/mnist-1/output/big?uploads", "", job).status, 200);
  EXPECT_EQ(tenants
                .json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"mnist-1"})",
                      "sagemaker", job)
                .code(),
            "")
      << "it may describe itself";
  const std::string stream =
      R"("logGroupName":"/aws/sagemaker/TrainingJobs","logStreamName":"mnist-1/mine")";
  EXPECT_EQ(tenants.json("Logs_20140328.CreateLogStream", "{" + stream + "}", "logs", job).status,
            200);
  EXPECT_EQ(
      tenants
          .json("Logs_20140328.PutLogEvents",
                "{" + stream + R"(,"logEvents":[{"timestamp":)" +
                    std::to_string(to_milliseconds(tenants.clock.now())) + R"(,"message":"m"}]})",
                "logs", job)
          .status,
      200);
  EXPECT_EQ(
      tenants
          .form(
              "Action=PutMetricData&Version=2010-08-01&Namespace=mine&MetricData.member.1."
              "MetricName=loss&MetricData.member.1.Value=1&MetricData.member.1.Dimensions."
              "member.1.Name=TrainingJobName&MetricData.member.1.Dimensions.member.1.Value=mnist-1",
              "monitoring", job)
          .status,
      200);
  EXPECT_EQ(tenants.form("Action=GetCallerIdentity&Version=2011-06-15", "sts", job).status, 200);
}

TEST(JobKeys, ReachAnOutputPathThatIsNamedLikeTheJob) {
  TestTenants tenants;
  domain::Job job = tenants.job("power-1", 19);
  job.spec.output_uri = "s3://models/team/power-1/";
  tenants.put_job(job);
  const Signing keys = tenants.keys_of("power-1");
  EXPECT_EQ(tenants.s3("PUT", "/models/team/power-1/results/payload.pkl", "81", keys).status, 200);
  EXPECT_EQ(tenants.s3("GET", "/models/team/power-1/results/payload.pkl", "", keys).body, "81");
  EXPECT_EQ(tenants.s3("PUT", "/models/team/power-1/power-1/output/model", "", keys).status, 200);
  EXPECT_EQ(tenants.s3("PUT", "/models/team/power-12/x", "", keys).status, 403);
  EXPECT_EQ(tenants.s3("PUT", "/models/team/other", "", keys).status, 403);
}

TEST(JobPolicy, EndsTheJobsDirectoryWithItsName) {
  EXPECT_EQ(own_output("s3://models", "a"), "s3://models/a");
  EXPECT_EQ(own_output("s3://models/", "a"), "s3://models/a");
  EXPECT_EQ(own_output("s3://models/b/", "a"), "s3://models/b/a");
  EXPECT_EQ(own_output("s3://models/b/a/", "a"), "s3://models/b/a");
  EXPECT_EQ(own_output("s3://models/a", "a"), "s3://models/a");
  EXPECT_EQ(own_output("s3://models/ba", "a"), "s3://models/ba/a");
  EXPECT_EQ(own_output("s3://aaa", "aaa"), "s3://aaa/aaa") << "not the bucket";
}

const std::string kJobs = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/";

// Makes requests with a job's own keys that these do not allow.
struct JobKeysAreRefused : ::testing::Test {
  TestTenants tenants;
  const Signing job = tenants.keys_of("mnist-1");

  static void expect(const in_memory::Reply& reply, const std::string& action,
                     const std::string& resource) {
    const std::string text =
        "User: arn:aws:sts::123456789012:assumed-role/trainer/SageMaker-j17a1 is not authorized to "
        "perform: " +
        action + " on resource: " + resource + " because no ";
    // The code of SNS is its own.
    EXPECT_TRUE(reply.body.find("AccessDenied") != std::string::npos ||
                reply.body.find("AuthorizationError") != std::string::npos)
        << reply.body;
    EXPECT_NE(reply.body.find(text), std::string::npos) << action << "\n" << reply.body;
  }
  ~JobKeysAreRefused() override {
    EXPECT_EQ(tenants.control.jobs.size(), 2u);
    EXPECT_TRUE(tenants.control.interruptions.empty());
  }
};

TEST_F(JobKeysAreRefused, ObjectsOfOthers) {
  struct Attack {
    std::string method, target, action, resource;
    signing::HeaderList headers = {};
    std::string body = {};
  };
  const Attack attacks[] = {
      {"GET", "/bob/secret", "s3:GetObject", "arn:aws:s3:::bob/secret"},
      // The same response if the resource does not exist.
      {"GET", "/bob/nothing", "s3:GetObject", "arn:aws:s3:::bob/nothing"},
      {"GET", "/nowhere/nothing", "s3:GetObject", "arn:aws:s3:::nowhere/nothing"},
      {"GET", "/data/other/secret", "s3:GetObject", "arn:aws:s3:::data/other/secret"},
      {"GET", "/models/rival/output/model.tar.gz", "s3:GetObject",
       "arn:aws:s3:::models/rival/output/model.tar.gz"},
      {"PUT", "/data/train/part-0", "s3:PutObject", "arn:aws:s3:::data/train/part-0", {}, "x"},
      {"PUT",
       "/models/mnist-10/output/x",
       "s3:PutObject",
       "arn:aws:s3:::models/mnist-10/output/x",
       {},
       "x"},
      {"DELETE", "/bob/secret", "s3:DeleteObject", "arn:aws:s3:::bob/secret"},
      {"POST",
       "/bob?delete",
       "s3:DeleteObject",
       "arn:aws:s3:::bob/secret",
       {},
       "<Delete><Object><Key>secret</Key></Object></Delete>"},
      {"PUT",
       "/models/mnist-1/copy",
       "s3:GetObject",
       "arn:aws:s3:::bob/secret",
       {{"x-amz-copy-source", "/bob/secret"}}},
      {"PUT",
       "/models/mnist-1/copy",
       "s3:GetObject",
       "arn:aws:s3:::bob/sec ret",
       {{"x-amz-copy-source", "bob/sec%20ret"}}},
      {"PUT",
       "/bob/copy",
       "s3:PutObject",
       "arn:aws:s3:::bob/copy",
       {{"x-amz-copy-source", "/data/train/part-0"}}},
      {"GET", "/data?list-type=2", "s3:ListBucket", "arn:aws:s3:::data"},
      {"GET", "/data?list-type=2&prefix=other/", "s3:ListBucket", "arn:aws:s3:::data"},
      {"GET", "/bob", "s3:ListBucket", "arn:aws:s3:::bob"},
      {"GET", "/", "s3:ListAllMyBuckets", "*"},
      {"PUT", "/new-bucket", "s3:CreateBucket", "arn:aws:s3:::new-bucket"},
      {"DELETE", "/bob", "s3:DeleteBucket", "arn:aws:s3:::bob"},
      {"POST", "/bob/big?uploads", "s3:PutObject", "arn:aws:s3:::bob/big"},
  };
  for (const Attack& attack : attacks)
    expect(tenants.s3(attack.method, attack.target, attack.body, job, attack.headers),
           attack.action, attack.resource);
  EXPECT_EQ(tenants.s3("GET", "/bob/secret").body, "bytes");
}

TEST_F(JobKeysAreRefused, JobsOfOthers) {
  const auto sagemaker = [&](const std::string& operation, const std::string& body) {
    return tenants.json("SageMaker." + operation, body, "sagemaker", job);
  };
  expect(sagemaker("CreateTrainingJob", training_job("mine")), "sagemaker:CreateTrainingJob",
         kJobs + "mine");
  expect(sagemaker("DescribeTrainingJob", R"({"TrainingJobName":"rival"})"),
         "sagemaker:DescribeTrainingJob", kJobs + "rival");
  expect(sagemaker("DescribeTrainingJob", R"({"TrainingJobName":"never"})"),
         "sagemaker:DescribeTrainingJob", kJobs + "never");
  expect(sagemaker("StopTrainingJob", R"({"TrainingJobName":"mnist-1"})"),
         "sagemaker:StopTrainingJob", kJobs + "mnist-1");
  expect(sagemaker("ListTrainingJobs", "{}"), "sagemaker:ListTrainingJobs", "*");
  expect(sagemaker("ListTags", R"({"ResourceArn":")" + kJobs + R"(rival"})"), "sagemaker:ListTags",
         kJobs + "rival");
}

TEST_F(JobKeysAreRefused, LogsOfOthers) {
  const std::string group =
      "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/sagemaker/TrainingJobs:log-stream:";
  const auto logs = [&](const std::string& operation, const std::string& more) {
    return tenants.json("Logs_20140328." + operation,
                        R"({"logGroupName":"/aws/sagemaker/TrainingJobs")" + more + "}", "logs",
                        job);
  };
  expect(logs("PutLogEvents",
              R"(,"logStreamName":"rival/algo-1-1","logEvents":[{"timestamp":1,"message":"m"}])"),
         "logs:PutLogEvents", group + "rival/algo-1-1");
  expect(logs("CreateLogStream", R"(,"logStreamName":"rival/mine")"), "logs:CreateLogStream",
         group + "rival/mine");
  expect(logs("GetLogEvents", R"(,"logStreamName":"rival/algo-1-1")"), "logs:GetLogEvents",
         group + "rival/algo-1-1");
  expect(logs("FilterLogEvents", ""), "logs:FilterLogEvents", group);
  expect(logs("FilterLogEvents", R"(,"logStreamNames":["mnist-1/algo-1-1","rival/algo-1-1"])"),
         "logs:FilterLogEvents", group + "rival/algo-1-1");
  expect(logs("DescribeLogStreams", ""), "logs:DescribeLogStreams", group);
  expect(logs("DescribeLogStreams", R"(,"logStreamNamePrefix":"mnist-1")"),
         "logs:DescribeLogStreams", group + "mnist-1");
}

TEST_F(JobKeysAreRefused, MetricsOfOthers) {
  const std::string metric =
      "Action=PutMetricData&Version=2010-08-01&Namespace=mine&MetricData.member.1.MetricName=loss&"
      "MetricData.member.1.Value=1";
  expect(tenants.form(metric, "monitoring", job), "cloudwatch:PutMetricData", "*");
  expect(tenants.form(metric + "&MetricData.member.1.Dimensions.member.1.Name=TrainingJobName&"
                               "MetricData.member.1.Dimensions.member.1.Value=rival",
                      "monitoring", job),
         "cloudwatch:PutMetricData", "*");
}

TEST_F(JobKeysAreRefused, TopicsAndRules) {
  const std::string topic = "arn:aws:sns:eu-west-1:123456789012:alerts";
  const std::string named = "&Version=2010-03-31&TopicArn=" + percent_encode(topic);
  expect(tenants.form("Action=Publish&Message=x" + named, "sns", job), "sns:Publish", topic);
  expect(tenants.form("Action=Subscribe&Protocol=http&Endpoint=http://x/" + named, "sns", job),
         "sns:Subscribe", topic);
  const auto events = [&](const std::string& operation, const std::string& body) {
    return tenants.json("AWSEvents." + operation, body, "events", job);
  };
  const std::string rule = "arn:aws:events:eu-west-1:123456789012:rule/r";
  expect(events("PutRule", R"({"Name":"r","EventPattern":"{}"})"), "events:PutRule", rule);
  expect(events("PutTargets", R"({"Rule":"r","Targets":[{"Id":"1","Arn":")" + topic + R"("}]})"),
         "events:PutTargets", rule);
  expect(events("PutEvents", R"({"Entries":[{}]})"), "events:PutEvents",
         "arn:aws:events:eu-west-1:123456789012:event-bus/default");
}

TEST_F(JobKeysAreRefused, EverythingElse) {
  expect(tenants.batch("describejobs", R"({"jobs":["x"]})", job), "batch:DescribeJobs",
         "arn:aws:batch:eu-west-1:123456789012:job/x");
  expect(tenants.batch("submitjob", R"({"jobName":"a","jobQueue":"q","jobDefinition":"d"})", job),
         "batch:SubmitJob", "arn:aws:batch:eu-west-1:123456789012:job-definition/d");
  expect(tenants.form(assume("admin"), "sts", job), "sts:AssumeRole",
         "arn:aws:iam::123456789012:role/admin");
  expect(tenants.form(assume("trainer"), "sts", job), "sts:AssumeRole", kTrainer);
  expect(tenants.form(assume("TrainyardOwner"), "sts", job), "sts:AssumeRole",
         "arn:aws:iam::123456789012:role/TrainyardOwner");
  const auto own = [&](const std::string& operation, const std::string& body) {
    return tenants.json("Trainyard." + operation, body, "trainyard", job);
  };
  expect(own("InterruptTrainingJob", R"({"TrainingJobName":"rival"})"),
         "trainyard:InterruptTrainingJob", kJobs + "rival");
  expect(own("KillJob", R"({"JobName":"rival"})"), "trainyard:KillJob",
         "arn:aws:trainyard:eu-west-1:123456789012:job/rival");
  expect(own("ExplainJob", R"({"JobName":"rival"})"), "trainyard:ExplainJob",
         "arn:aws:trainyard:eu-west-1:123456789012:job/rival");
  expect(own("DescribeJobTime", R"({"JobName":"rival"})"), "trainyard:DescribeJobTime",
         "arn:aws:trainyard:eu-west-1:123456789012:job/rival");
  expect(own("GetJobTimeline", R"({"JobName":"rival"})"), "trainyard:GetJobTimeline",
         "arn:aws:trainyard:eu-west-1:123456789012:job/rival");
  expect(own("GetTimeReport", R"({"GroupBy":"user"})"), "trainyard:GetTimeReport", "*");
  expect(own("ReplayJobs", "{}"), "trainyard:ReplayJobs", "*");
  expect(own("ListJobs", "{}"), "trainyard:ListJobs", "*");
  expect(own("GetCostReport", R"({"GroupBy":"user"})"), "trainyard:GetCostReport", "*");
  expect(own("DescribeRegion", "{}"), "trainyard:DescribeRegion", "*");
  expect(own("DescribeServer", "{}"), "trainyard:DescribeServer", "*");
  expect(own("ListMachines", "{}"), "trainyard:ListMachines", "*");
  expect(own("ListEvents", "{}"), "trainyard:ListEvents", "*");
  expect(own("PreviewJob", R"({"TrainingJobRequest":"{}"})"), "trainyard:PreviewJob", "*");
  expect(own("ListJobTemplates", "{}"), "trainyard:ListJobTemplates", "*");
  const std::string of_template = "arn:aws:trainyard:eu-west-1:123456789012:job-template/rival";
  expect(own("PutJobTemplate", R"({"TemplateName":"rival","TrainingJobRequest":"{}"})"),
         "trainyard:PutJobTemplate", of_template);
  expect(own("DeleteJobTemplate", R"({"TemplateName":"rival"})"), "trainyard:DeleteJobTemplate",
         of_template);
  const auto shell = *tenants.send(signed_request("GET", "/trainyard/shell?job=rival&host=0", {},
                                                  "", "trainyard", tenants.clock.now(), job));
  expect(shell, "trainyard:Shell", kJobs + "rival");
}

TEST(JobKeys, EndWithTheirAttempt) {
  TestTenants tenants;
  const Signing keys = tenants.keys_of("mnist-1");
  const auto code = [&] {
    return tenants
        .json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"mnist-1"})", "sagemaker",
              keys)
        .code();
  };
  EXPECT_EQ(code(), "");
  domain::Job job = tenants.job("mnist-1", 17);
  job.attempts.back().state = domain::AttemptState::ended;
  tenants.put_job(job);
  EXPECT_EQ(code(), "ExpiredTokenException");
  job.attempts.push_back({.number = 2, .state = domain::AttemptState::running});
  tenants.put_job(job);
  EXPECT_EQ(code(), "ExpiredTokenException") << "the next attempt has keys of its own";
  tenants.put_job(tenants.job("mnist-1", 19));
  EXPECT_EQ(code(), "ExpiredTokenException") << "another job of that name";
  job = tenants.job("mnist-1", 17);
  job.state = domain::JobState::completed;
  tenants.put_job(job);
  EXPECT_EQ(code(), "ExpiredTokenException");
}

TEST(JobKeys, AreNotExtendedByAnotherRole) {
  TestTenants tenants;
  tenants.add_role("deploy", allow(R"("s3:GetObject")", R"("arn:aws:s3:::bob/*")"),
                   R"({"AWS":"arn:aws:iam::123456789012:role/trainer"})");
  const Signing job = tenants.keys_of("mnist-1");
  EXPECT_NE(tenants.form(assume("deploy", "&DurationSeconds=3601"), "sts", job)
                .body.find("role chaining"),
            std::string::npos);
  const Signing chained = credentials(tenants.form(assume("deploy"), "sts", job));
  EXPECT_EQ(tenants.s3("GET", "/bob/secret", "", chained).body, "bytes");
  EXPECT_EQ(tenants.s3("GET", "/data/train/part-0", "", chained).status, 403)
      << "the role's rights, not the job's";
  domain::Job over = tenants.job("mnist-1", 17);
  over.state = domain::JobState::stopped;
  tenants.put_job(over);
  EXPECT_NE(tenants.s3("GET", "/bob/secret", "", chained).body.find("<Code>ExpiredToken</Code>"),
            std::string::npos);
}

TEST(Sessions, KeepPersonAndSourceIdentityAndCanBeRevoked) {
  TestTenants tenants;
  const Signing ana =
      tenants.add_user("ana", allow(R"("sts:AssumeRole","sts:SetSourceIdentity")", R"("*")"));
  const std::string everybody = R"({"AWS":"123456789012"})";
  tenants.add_role("one", allow(R"("*")", R"("*")"), everybody);
  policy::Role one = *tenants.identities->find_role("one");
  one.trust = document(
      R"({"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":["sts:AssumeRole","sts:SetSourceIdentity"],"Principal":{"AWS":"123456789012"}}})",
      policy::PolicyKind::trust);
  tenants.identities->put(one);
  const Signing first = credentials(tenants.form(assume("one", "&SourceIdentity=ana"), "sts", ana));
  EXPECT_EQ(tenants.form(assume("one", "&SourceIdentity=bob"), "sts", first).status, 403);
  const Signing second = credentials(tenants.form(assume("one"), "sts", first));
  ASSERT_EQ(tenants
                .json("SageMaker.CreateTrainingJob",
                      training_job("by-session", "arn:aws:iam::123456789012:role/one"), "sagemaker",
                      second)
                .status,
            400)
      << "the role does not trust SageMaker";
  const auto created =
      tenants.json("SageMaker.CreateTrainingJob", training_job("by-session"), "sagemaker", second);
  ASSERT_EQ(created.status, 200) << created.body;
  EXPECT_EQ(tenants.control.jobs.at({"eu-west-1", "by-session"})->spec.principal, "ana");

  one.inline_policies["AWSRevokeOlderSessions"] = document(
      R"({"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"DateLessThan":{"aws:TokenIssueTime":")" +
      to_iso8601(tenants.clock.now() + 1s) + R"("}}}})");
  tenants.identities->put(one);
  EXPECT_NE(tenants.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", second)
                .message()
                .find("with an explicit deny"),
            std::string::npos);
  tenants.clock.advance(2s);
  const Signing later = credentials(tenants.form(assume("one"), "sts", ana));
  EXPECT_EQ(tenants.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", later).status, 200);
}

TEST(Sessions, MayDoLessThanTheirRole) {
  TestTenants tenants;
  tenants.add_role("one", allow(R"("s3:*")", R"("*")"), R"({"AWS":"123456789012"})");
  const std::string policy = percent_encode(allow(R"("s3:GetObject")", R"("arn:aws:s3:::data/*")"));
  const auto assumed = tenants.form(assume("one", "&Policy=" + policy), "sts");
  ASSERT_EQ(assumed.status, 200) << assumed.body;
  const Signing session = credentials(assumed);
  EXPECT_EQ(tenants.s3("GET", "/data/train/part-0", "", session).status, 200);
  EXPECT_NE(
      tenants.s3("GET", "/bob/secret", "", session).body.find("because no session policy allows"),
      std::string::npos);
  EXPECT_NE(
      tenants.form(assume("one", "&Policy=%7B%7D"), "sts").body.find("MalformedPolicyDocument"),
      std::string::npos);
}

TEST(Users, HaveTheRightsOfTheirPolicies) {
  TestTenants tenants;
  const Signing ana = tenants.add_user("ana", R"({"Version":"2012-10-17","Statement":[
               {"Effect":"Allow","Action":"sagemaker:*","Resource":"*"},
               {"Effect":"Allow","Action":"iam:PassRole","Resource":"*"},
               {"Effect":"Allow","Action":"s3:*","Resource":["arn:aws:s3:::models","arn:aws:s3:::models/*"]}]})");
  EXPECT_EQ(tenants.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", ana).status, 200);
  EXPECT_EQ(tenants.s3("GET", "/bob/secret", "", ana).status, 403);
  const auto create = [&](const std::string& role) {
    return tenants.json("SageMaker.CreateTrainingJob",
                        training_job("by-ana", "arn:aws:iam::123456789012:role/" + role),
                        "sagemaker", ana);
  };
  // An undefined role may read what the request names, so the job's creator must be allowed to read
  // it.
  EXPECT_NE(create("trainer").message().find("s3:GetObject on resource: arn:aws:s3:::bob/*"),
            std::string::npos);
  EXPECT_NE(create("TrainyardOwner").message().find("iam:PassRole"), std::string::npos);
  tenants.add_role("reader", allow(R"("s3:GetObject")", R"("arn:aws:s3:::bob/*")"),
                   R"({"Service":"sagemaker.amazonaws.com"})");
  EXPECT_EQ(create("reader").status, 200) << "a role that is defined has its own rights";
  std::string board = training_job("board");
  board.replace(board.find("s3://bob/"), 9, "s3://models/");
  board.insert(board.size() - 1, R"(,"TensorBoardOutputConfig":{"S3OutputPath":"s3://bob/t/"})");
  EXPECT_NE(tenants.json("SageMaker.CreateTrainingJob", board, "sagemaker", ana)
                .message()
                .find("s3:PutObject on resource: arn:aws:s3:::bob/t/board/tensorboard-output/*"),
            std::string::npos);
  EXPECT_EQ(tenants.control.jobs.at({"eu-west-1", "by-ana"})->spec.principal, "ana");
  const Signing key_off = ana;
  auto key = *tenants.identities->find_key("AKIAana");
  key.active = false;
  tenants.identities->put(key);
  EXPECT_EQ(tenants.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", key_off).code(),
            "UnrecognizedClientException");
}

TEST(Users, PassOnlyTheRolesThatTheyMay) {
  TestTenants tenants;
  const Signing ana = tenants.add_user("ana", R"({"Version":"2012-10-17","Statement":[
      {"Effect":"Allow","Action":["sagemaker:*","s3:*"],"Resource":"*"},
      {"Effect":"Allow","Action":"iam:PassRole","Resource":"arn:aws:iam::123456789012:role/team-*",
       "Condition":{"StringEquals":{"iam:PassedToService":"sagemaker.amazonaws.com"}}}]})");
  const auto create = [&](const std::string& name, const std::string& role) {
    return tenants.json("SageMaker.CreateTrainingJob",
                        training_job(name, "arn:aws:iam::123456789012:role/" + role), "sagemaker",
                        ana);
  };
  EXPECT_EQ(create("a", "team-reader").status, 200);
  EXPECT_NE(create("b", "admin")
                .message()
                .find("iam:PassRole on resource: arn:aws:iam::123456789012:role/admin"),
            std::string::npos);
  // Another account in the ARN grants nothing: permissions are those on this account's role.
  const auto of_another_account = [&](const std::string& name, const std::string& role) {
    return tenants.json("SageMaker.CreateTrainingJob",
                        training_job(name, "arn:aws:iam::999988887777:role/" + role), "sagemaker",
                        ana);
  };
  EXPECT_EQ(of_another_account("d", "team-reader").status, 200);
  EXPECT_NE(of_another_account("e", "admin")
                .message()
                .find("iam:PassRole on resource: arn:aws:iam::123456789012:role/admin"),
            std::string::npos);
  const Signing eve = tenants.add_user("eve", R"({"Version":"2012-10-17","Statement":[
      {"Effect":"Allow","Action":["sagemaker:*","s3:*","iam:PassRole"],"Resource":"*"},
      {"Effect":"Deny","Action":"iam:PassRole","Resource":"arn:aws:iam::123456789012:role/admin"}]})");
  EXPECT_NE(tenants
                .json("SageMaker.CreateTrainingJob",
                      training_job("f", "arn:aws:iam::999988887777:role/admin"), "sagemaker", eve)
                .message()
                .find("with an explicit deny"),
            std::string::npos);
  // The path of a defined role counts, not the one in the request.
  tenants.add_role("admin", allow(R"("*")", R"("*")"), R"({"Service":"sagemaker.amazonaws.com"})");
  EXPECT_NE(create("c", "team-x/admin")
                .message()
                .find("iam:PassRole on resource: arn:aws:iam::123456789012:role/admin"),
            std::string::npos);
}

// Requests name roles and profiles without the path that policies name.
TEST(Users, ChangeOnlyIdentitiesWithAllowedPaths) {
  TestTenants tenants;
  const Signing eve = tenants.add_user("eve", R"({"Version":"2012-10-17","Statement":[
      {"Effect":"Allow","Action":"iam:*","Resource":"*"},
      {"Effect":"Deny","Action":"iam:*","Resource":["arn:aws:iam::123456789012:role/admin/*",
       "arn:aws:iam::123456789012:instance-profile/lab/*"]}]})");
  policy::Role boss;
  boss.name = "boss";
  boss.path = "/admin/";
  boss.id = "AROAboss";
  boss.trust =
      document(trust(R"({"Service":"sagemaker.amazonaws.com"})"), policy::PolicyKind::trust);
  tenants.identities->put(boss);
  policy::InstanceProfile machines;
  machines.name = "machines";
  machines.path = "/lab/";
  machines.id = "AIPAmachines";
  tenants.identities->put(machines);
  const auto refused = [&](const std::string& request) {
    return tenants.form("Version=2010-05-08&Action=" + request, "iam", eve).body;
  };
  for (const std::string request :
       {"DeleteRole&RoleName=boss", "GetRole&RoleName=boss",
        "DeleteInstanceProfile&InstanceProfileName=machines",
        "RemoveRoleFromInstanceProfile&InstanceProfileName=machines&RoleName=x"})
    EXPECT_NE(refused(request).find("with an explicit deny"), std::string::npos)
        << request << refused(request);
}

TEST(OpenRoles, AllowEverything) {
  TestTenants tenants(true);
  const Signing job = tenants.keys_of("mnist-1");
  EXPECT_EQ(tenants.s3("GET", "/bob/secret", "", job).body, "bytes");
  ASSERT_EQ(
      tenants.json("SageMaker.CreateTrainingJob", training_job("child"), "sagemaker", job).status,
      200);
  EXPECT_EQ(tenants.control.jobs.at({"eu-west-1", "child"})->spec.principal, "ana")
      << "it counts for the person who submitted the first job";
  EXPECT_EQ(tenants.form(assume("other"), "sts", job).status, 200);
  EXPECT_EQ(tenants.form(assume("TrainyardOwner"), "sts", job).status, 403);
  domain::Job over = tenants.job("mnist-1", 17);
  over.state = domain::JobState::stopped;
  tenants.put_job(over);
  EXPECT_EQ(tenants.s3("GET", "/bob/secret", "", job).status, 400)
      << "they still end with the attempt";
}

TEST(Presigned, HaveTheSignersRights) {
  TestTenants tenants;
  const Signing job = tenants.keys_of("mnist-1");
  const auto get = [&](const std::string& target) {
    net::Request request;
    request.method = "GET";
    request.target = signing::presign("GET", target, "127.0.0.1:4566", job.keys,
                                      {"eu-west-1", "s3"}, tenants.clock.now(), 60s);
    request.headers.add("Host", "127.0.0.1:4566");
    return *tenants.send(std::move(request));
  };
  EXPECT_EQ(get("/data/train/part-0").body, "bytes");
  EXPECT_EQ(get("/bob/secret").status, 403);
}

TEST(Regions, AreRejectedIfUnknownExceptBySts) {
  TestTenants tenants;
  Signing elsewhere;
  elsewhere.region = "mars-1";
  const auto reply = tenants.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", elsewhere);
  EXPECT_EQ(reply.message(),
            "Credential should be scoped to a valid region, not 'mars-1': this server's regions "
            "are eu-west-1.");
  EXPECT_EQ(tenants.form("Action=GetCallerIdentity&Version=2011-06-15", "sts", elsewhere).status,
            200);
}

TEST(JobPolicy, EscapesWildcardsInNames) {
  EXPECT_EQ(policy_literal("a*b?c${d}"), "a${*}b${?}c${$}{d}");
  TestTenants tenants;
  domain::Job job = tenants.job("mnist-1", 17);
  job.spec.channels[0].s3_uri = "s3://data/*";
  tenants.put_job(job);
  EXPECT_EQ(tenants.s3("GET", "/data/train/part-0", "", tenants.keys_of("mnist-1")).status, 403);
}

}  // namespace
}  // namespace trainyard::api
