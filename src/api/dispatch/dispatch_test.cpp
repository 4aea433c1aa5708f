// Tests whole requests through the handler without sockets: routing, authentication, decoding,
// responses.
#include <gtest/gtest.h>

#include "base/log.hpp"
#include "dispatch/api.hpp"
#include "dispatch/testing/test_server.hpp"

namespace trainyard::api {
namespace {

using in_memory::signed_request;
using in_memory::Signing;

struct DispatchServer : TestServer {
  DispatchServer() {
    settings.body_bytes_max = 100'000;
    settings.find_image = [](const std::string& name) -> Result<domain::Image> {
      if (name == "python") return domain::Image{};
      return not_found("there is no such image here; there are: python");
    };
    open();
  }
};

std::string create_body(const std::string& name, const std::string& more = "") {
  return R"({"TrainingJobName":")" + name +
         R"(","AlgorithmSpecification":{"TrainingImage":"python","TrainingInputMode":"File"},"RoleArn":"arn:aws:iam::123456789012:role/Train",)" +
         R"("OutputDataConfig":{"S3OutputPath":"s3://models/"},"ResourceConfig":{"InstanceType":"ml.m5.large","InstanceCount":2,"VolumeSizeInGB":5},)" +
         R"("StoppingCondition":{"MaxRuntimeInSeconds":600})" + more + "}";
}

TEST(Dispatch, AnswersInTheQueryProtocol) {
  DispatchServer world;
  const auto reply = world.form("Action=GetCallerIdentity&Version=2011-06-15");
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(
      reply.body.find("<Arn>arn:aws:sts::123456789012:assumed-role/TrainyardOwner/owner</Arn>"),
      std::string::npos)
      << reply.body;
  EXPECT_NE(reply.body.find("<Account>123456789012</Account>"), std::string::npos);
  const std::string id(reply.headers.get("x-amzn-requestid"));
  EXPECT_EQ(id.size(), 36u);
  EXPECT_NE(reply.body.find("<RequestId>" + id + "</RequestId>"), std::string::npos);
}

TEST(Dispatch, RejectsUnknownOperationsInEveryProtocol) {
  DispatchServer world;
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
  EXPECT_NE(reply.body.find("<Code>UnknownOperationException</Code>"), std::string::npos)
      << reply.body;
  reply = world.form("Action=Nothing", "unicorns");
  EXPECT_EQ(reply.status, 400);
  const std::string not_offered = " is not offered by this version; see docs/compatibility.md";
  EXPECT_EQ(world.json("SageMaker.CreateProcessingJob", "{}").message(),
            "CreateProcessingJob" + not_offered);
  reply = world.form("Action=GetFederationToken&Version=2011-06-15");
  EXPECT_NE(reply.body.find("GetFederationToken is not offered by this version"), std::string::npos)
      << reply.body;
  reply =
      *world.send(signed_request("GET", "/bucket?analytics&id=x", {}, "", "s3", world.clock.now()));
  EXPECT_EQ(reply.status, 501);
  EXPECT_NE(reply.body.find("GetBucketAnalyticsConfiguration is not offered by this version"),
            std::string::npos)
      << reply.body;
  EXPECT_NE(reply.body.find("<Code>NotImplemented</Code>"), std::string::npos) << reply.body;
  reply = *world.send(
      signed_request("POST", "/service/GraniteServiceVersion20100801/operation/ListMetrics",
                     {{"smithy-protocol", "rpc-v2-cbor"}}, "", "monitoring", world.clock.now()));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.code(), "UnknownOperationException");
  EXPECT_EQ(reply.message(),
            "ListMetrics over rpc-v2-cbor of the service monitoring" + not_offered);
  const auto signed_message = [&](const char* method, const char* path,
                                  const signing::HeaderList& headers, const char* service) {
    return world.send(signed_request(method, path, headers, "", service, world.clock.now()))
        ->message();
  };
  EXPECT_EQ(
      signed_message("POST", "/", {{"x-amz-target", "Registry_V2015.DescribeRepositories"}}, "ecr"),
      "DescribeRepositories of the service ecr" + not_offered);
  EXPECT_EQ(signed_message("GET", "/2015-03-31/functions/", {}, "lambda"),
            "The service lambda" + not_offered);
  EXPECT_EQ(signed_message("POST", "/endpoints/x/invocations", {}, "sagemaker"),
            "POST /endpoints/x/invocations" + not_offered);
}

TEST(Dispatch, RejectsConfigurationsWithUnknownElements) {
  DispatchServer world;
  const auto put = [&](const std::string& target, const std::string& body) {
    return *world.send(signed_request("PUT", target, {}, body, "s3", world.clock.now()));
  };
  ASSERT_EQ(put("/data", "").status, 200);
  const auto lifecycle = [&](const std::string& filter) {
    return put("/data?lifecycle", "<LifecycleConfiguration><Rule>" + filter +
                                      "<Status>Enabled</Status><Expiration><Days>1</Days>"
                                      "</Expiration></Rule></LifecycleConfiguration>");
  };
  const auto misspelled = lifecycle("<Filter><prefix>tmp/</prefix></Filter>");
  EXPECT_EQ(misspelled.status, 400);
  EXPECT_NE(misspelled.body.find("<Code>MalformedXML</Code>"), std::string::npos)
      << misspelled.body;
  EXPECT_EQ(lifecycle("<Filter><Prefix>tmp/</Prefix></Filter>").status, 200);
  EXPECT_EQ(lifecycle("<Filter/>").status, 200) << "it means all objects";
  for (const char* root : {"AccelerateConfiguration", "accelerateConfiguration"}) {
    const auto reply = put("/data?accelerate",
                           "<" + std::string(root) + "><Status>Suspended</Status></" + root + ">");
    EXPECT_EQ(reply.status, root[0] == 'A' ? 200 : 400) << reply.body;
  }
}

TEST(TrainingJobs, DescribeACreatedJob) {
  DispatchServer world;
  auto reply = world.json("SageMaker.CreateTrainingJob", create_body("mnist-1"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["TrainingJobArn"],
            "arn:aws:sagemaker:eu-west-1:123456789012:training-job/mnist-1");
  reply = world.json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"mnist-1"})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json job = reply.json();
  EXPECT_EQ(job["TrainingJobStatus"], "InProgress");
  EXPECT_EQ(job["SecondaryStatus"], "Starting");
  EXPECT_EQ(
      job["OutputDataConfig"],
      Json({{"KmsKeyId", ""}, {"S3OutputPath", "s3://models/"}, {"CompressionType", "GZIP"}}));
  EXPECT_EQ(job["ModelArtifacts"]["S3ModelArtifacts"], "s3://models/mnist-1/output/model.tar.gz");
  EXPECT_EQ(job["HyperParameters"], Json::object());
  EXPECT_EQ(job["CreationTime"], 1795167900);
  EXPECT_EQ(job["SecondaryStatusTransitions"][0]["StatusMessage"], "Starting the training job.");
  EXPECT_EQ(world.json("SageMaker.CreateTrainingJob", create_body("mnist-1")).code(),
            "ResourceInUse");
  // Names are unique per region only.
  EXPECT_EQ(world
                .json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"mnist-1"})",
                      "sagemaker", {{"AKIAOWNER", "owner-secret", ""}, "us-east-1"})
                .message(),
            "Requested resource not found.");
}

TEST(TrainingJobs, AnswerACreationLater) {
  DispatchServer world;
  world.control.hold = true;
  auto reply =
      world.send(signed_request("POST", "/", {{"X-Amz-Target", "SageMaker.CreateTrainingJob"}},
                                create_body("later"), "sagemaker", world.clock.now()));
  EXPECT_FALSE(reply->answered);
  ASSERT_EQ(world.control.held.size(), 1u);
  world.control.held[0]();
  world.control.held.clear();
  EXPECT_TRUE(reply->answered);
  EXPECT_EQ(reply->status, 200) << reply->body;
}

TEST(TrainingJobs, RejectUnsupportedRequestsWithAnExplanation) {
  DispatchServer world;
  const auto message = [&](std::string body) {
    const auto reply = world.json("SageMaker.CreateTrainingJob", body);
    EXPECT_EQ(reply.code(), "ValidationException") << reply.body;
    return reply.message();
  };
  const auto with = [&](const std::string& more) { return message(create_body("job", more)); };
  // A member added at the end replaces the request's own: the last duplicate in a JSON object
  // counts.
  const std::pair<std::string, std::string> table[] = {
      {R"(,"CheckpointConfig":{"S3Uri":"b/c"})", "checkpointConfig.s3Uri"},
      {R"(,"TensorBoardOutputConfig":{"S3OutputPath":"b/c"})",
       "tensorBoardOutputConfig.s3OutputPath"},
      {R"(,"TensorBoardOutputConfig":{"S3OutputPath":"s3://b","LocalPath":"/opt/ml/input/t"})",
       "TensorBoardOutputConfig.LocalPath '/opt/ml/input/t' cannot be used: the job's own files"},
      {R"(,"TensorBoardOutputConfig":{"S3OutputPath":"s3://b","LocalPath":"/a/../b"})",
       "it must be a plain path"},
      {R"(,"TensorBoardOutputConfig":{"S3OutputPath":"s3://b","LocalPath":"/c/d/"},"CheckpointConfig":{"S3Uri":"s3://b","LocalPath":"/c"})",
       "TensorBoardOutputConfig.LocalPath '/c/d/' cannot be used: it overlaps with Checkpoint"},
      {R"(,"TensorBoardOutputConfig":{"S3OutputPath":"s3://b","LocalPath":"/c"},"CheckpointConfig":{"S3Uri":"s3://b","LocalPath":"/c/d"})",
       "it overlaps with CheckpointConfig.LocalPath"},
      {R"(,"EnableManagedSpotTraining":true)", "Invalid MaxWaitTimeInSeconds. It must be present"},
      {R"(,"StoppingCondition":{"MaxWaitTimeInSeconds":5})",
       "Invalid MaxWaitTimeInSeconds. It is supported only when"},
      {R"(,"StoppingCondition":{"MaxRuntimeInSeconds":2419201})",
       "MaxRuntimeInSeconds must be at most 2419200"},
      {R"(,"StoppingCondition":{"MaxPendingTimeInSeconds":60})", "maxPendingTimeInSeconds"},
      {R"(,"RetryStrategy":{"MaximumRetryAttempts":31})", "maximumRetryAttempts"},
      {R"(,"OutputDataConfig":{"S3OutputPath":"s3://b","KmsKeyId":"k"})",
       "OutputDataConfig.KmsKeyId is not"},
      {R"(,"ResourceConfig":{"InstanceType":"ml.m5.large","InstanceCount":1,"KeepAlivePeriodInSeconds":60},
           "EnableManagedSpotTraining":true,"StoppingCondition":{"MaxRuntimeInSeconds":5,"MaxWaitTimeInSeconds":5})",
       "KeepAlivePeriodInSeconds is not"},
      {R"(,"ResourceConfig":{"InstanceType":"ml.m5.large"})",
       "ResourceConfig needs InstanceType and InstanceCount"},
      {R"(,"ResourceConfig":{"InstanceType":"ml.m5.large","InstanceCount":0})",
       "needs at least one instance"},
      {R"(,"ResourceConfig":{"InstanceType":"ml.m5.large","InstanceCount":1,"InstanceGroups":[{"InstanceType":"ml.m5.large","InstanceCount":1,"InstanceGroupName":"a"}]})",
       "either InstanceGroups or"},
      {R"(,"AlgorithmSpecification":{"TrainingInputMode":"File","AlgorithmName":"mine"})",
       "AlgorithmName is not supported"},
      {R"(,"AlgorithmSpecification":{"TrainingInputMode":"File"})", "TrainingImage is required"},
      {R"(,"AlgorithmSpecification":{"TrainingInputMode":"File","TrainingImage":"other"})",
       "there are: python"},
      {R"~(,"AlgorithmSpecification":{"TrainingInputMode":"File","TrainingImage":"python","MetricDefinitions":[{"Name":"m","Regex":"(?=x)"}]})~",
       "The regex '(?=x)' of metric m cannot be used"},
      {R"(,"AlgorithmSpecification":{"TrainingInputMode":"File","TrainingImage":"python","MetricDefinitions":[{"Name":"m","Regex":"x"}]})",
       "needs a group"},
      {R"(,"InputDataConfig":[{"ChannelName":"a","DataSource":{}}])",
       "DataSource needs either S3DataSource or"},
      {R"(,"InputDataConfig":[{"ChannelName":"a","InputMode":"FastFile","CompressionType":"Gzip","DataSource":{"S3DataSource":{"S3DataType":"S3Prefix","S3Uri":"s3://b/m"}}}])",
       "Gzip can be used only in Pipe mode"},
      {R"(,"Tags":[{"Key":"a","Value":"1"},{"Key":"A","Value":"2"}])", "Duplicate tag keys"},
  };
  for (const auto& [more, wanted] : table)
    EXPECT_NE(with(more).find(wanted), std::string::npos) << wanted << "\n" << with(more);
  EXPECT_TRUE(world.control.jobs.empty());
}

TEST(TrainingJobs, StoreAndReturnHarmlessMembers) {
  DispatchServer world;
  const std::string more =
      R"(,"VpcConfig":{"SecurityGroupIds":["sg-1"],"Subnets":["subnet-1"]},"DebugHookConfig":{"S3OutputPath":"s3://b/d"},)"
      R"("ProfilerConfig":{"S3OutputPath":"s3://b/p","DisableProfiler":false},"ExperimentConfig":{"TrialName":"t"},)"
      R"("InputDataConfig":[{"ChannelName":"train","DataSource":{"S3DataSource":{"S3DataType":"S3Prefix","S3Uri":"s3://b/t"}}}])";
  ASSERT_EQ(world.json("SageMaker.CreateTrainingJob", create_body("job", more)).status, 200);
  const Json job =
      world.json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"job"})").json();
  EXPECT_EQ(job["VpcConfig"]["Subnets"][0], "subnet-1");
  EXPECT_EQ(job["DebugHookConfig"]["S3OutputPath"], "s3://b/d");
  EXPECT_EQ(job["ExperimentConfig"]["TrialName"], "t");
  EXPECT_EQ(job["ProfilingStatus"], "Enabled");
  EXPECT_EQ(job["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3DataDistributionType"],
            "FullyReplicated");
  const auto spec = world.control.jobs.begin()->second->spec;
  EXPECT_EQ(spec.output_uri, "s3://models");
  EXPECT_EQ(spec.groups[0].name, "homogeneousCluster");
  EXPECT_EQ(spec.groups[0].count, 2u);
  EXPECT_EQ(spec.channels[0].s3_uri, "s3://b/t");
  EXPECT_EQ(spec.request["TrainingJobName"], "job");
  const std::vector<std::string> without_effect{"VpcConfig", "DebugHookConfig", "ProfilerConfig",
                                                "ExperimentConfig"};
  ASSERT_EQ(spec.notes.size(), without_effect.size());
  for (size_t i = 0; i < spec.notes.size(); ++i)
    EXPECT_TRUE(spec.notes[i].starts_with(without_effect[i] + " has no effect here: "))
        << spec.notes[i];
  const Json shown =
      world.json("Trainyard.DescribeJob", R"({"JobName":"job"})", "trainyard").json();
  EXPECT_EQ(shown["Notes"], Json(spec.notes));
}

TEST(TrainingJobs, HaveALocationForTensorboardFiles) {
  DispatchServer world;
  const auto create = [&](const std::string& name, const std::string& more) {
    return world.json("SageMaker.CreateTrainingJob",
                      create_body(name, R"(,"TensorBoardOutputConfig":)" + more));
  };
  ASSERT_EQ(create("one", R"({"S3OutputPath":"s3://b/board/"})").status, 200);
  ASSERT_EQ(create("two", R"({"S3OutputPath":"s3://b","LocalPath":"/runs/"},)"
                          R"("CheckpointConfig":{"S3Uri":"s3://b","LocalPath":"/runs-2"})")
                .status,
            200)
      << "a name that begins alike is another directory";
  const auto one = world.control.jobs[{"eu-west-1", "one"}]->spec.tensorboard;
  EXPECT_EQ(one->uri, "s3://b/board/one/tensorboard-output");
  EXPECT_EQ(one->path, "/opt/ml/output/tensorboard");
  EXPECT_EQ((world.control.jobs[{"eu-west-1", "two"}]->spec.tensorboard->path), "/runs");
  const Json described =
      world.json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"one"})").json();
  EXPECT_EQ(dump(described["TensorBoardOutputConfig"]), R"({"S3OutputPath":"s3://b/board/"})");
}

TEST(TrainingJobs, PassSpotRetriesAndWarmPoolsToControl) {
  DispatchServer world;
  const std::string body = create_body(
      "job",
      R"(,"EnableManagedSpotTraining":true,"RetryStrategy":{"MaximumRetryAttempts":3},)"
      R"("StoppingCondition":{"MaxRuntimeInSeconds":5,"MaxWaitTimeInSeconds":6,"MaxPendingTimeInSeconds":7200})");
  ASSERT_EQ(world.json("SageMaker.CreateTrainingJob", body).status, 200);
  const domain::JobSpec& spec = world.control.jobs[{"eu-west-1", "job"}]->spec;
  EXPECT_TRUE(spec.spot);
  EXPECT_EQ(spec.max_wait_seconds, 6);
  EXPECT_EQ(spec.max_pending_seconds, 7200);
  EXPECT_EQ(spec.retries_max, 3u);

  const auto interrupt = [&](const std::string& more) {
    return world.json("Trainyard.InterruptTrainingJob", R"({"TrainingJobName":"job")" + more + "}",
                      "trainyard");
  };
  EXPECT_EQ(interrupt(R"(,"HostName":"algo-2","NoticeInSeconds":7,"Reason":"why")").status, 200);
  EXPECT_EQ(world.control.interruptions.at(0).host, 1u);
  EXPECT_EQ(world.control.interruptions.at(0).notice, Duration(7s));
  EXPECT_EQ(world.control.interruptions.at(0).reason, "why");
  EXPECT_EQ(interrupt("").status, 200);
  EXPECT_FALSE(world.control.interruptions.at(1).notice);
  EXPECT_EQ(world.control.interruptions.at(1).reason, "requested by owner");
  EXPECT_EQ(interrupt(R"(,"HostName":"algo-0")").code(), "ValidationException");
  EXPECT_EQ(
      world.json("Trainyard.InterruptTrainingJob", R"({"TrainingJobName":"none"})", "trainyard")
          .message(),
      "Requested resource not found.");

  const auto kill = [&](const std::string& name) {
    return world.json("Trainyard.KillJob", R"({"JobName":")" + name + R"("})", "trainyard");
  };
  EXPECT_EQ(kill("job").status, 200);
  ASSERT_EQ(world.control.killed.size(), 1u);
  EXPECT_TRUE(world.control.killed[0].starts_with("killed by ")) << world.control.killed[0];
  EXPECT_EQ(kill("none").message(), "Requested resource not found.");

  const auto update = [&](const std::string& more) {
    return world.json("SageMaker.UpdateTrainingJob", R"({"TrainingJobName":"job")" + more + "}");
  };
  EXPECT_EQ(update(R"(,"ResourceConfig":{"KeepAlivePeriodInSeconds":5})").message(),
            "KeepAlivePeriodInSeconds of training job job cannot be updated: it has no warm pool");
  EXPECT_EQ(update("").message(), "At least one field to update must be provided: ResourceConfig");
}

TEST(TrainingJobs, DescribeTimesReasonsAndLastMetrics) {
  DispatchServer world;
  const std::string body = create_body(
      "job",
      R"(,"AlgorithmSpecification":{"TrainingInputMode":"File","TrainingImage":"python",)"
      R"~("MetricDefinitions":[{"Name":"loss","Regex":"loss=(.*)"},{"Name":"other","Regex":"(x)"}]})~");
  ASSERT_EQ(world.json("SageMaker.CreateTrainingJob", body).status, 200);
  const domain::JobKey key{"eu-west-1", "job"};
  auto job = std::make_shared<domain::Job>(*world.control.jobs[key]);
  job->transitions.back().message = "waiting for 2 CPUs, which other holds";
  job->note = "each host was halved";
  world.control.jobs[key] = job;
  const auto describe = [&] {
    return world.json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"job"})").json();
  };
  EXPECT_EQ(describe()["SecondaryStatusTransitions"][0]["StatusMessage"],
            "waiting for 2 CPUs, which other holds. each host was halved");
  EXPECT_FALSE(describe().contains("FinalMetricDataList"));

  const Instant start = world.clock.now();
  ASSERT_TRUE(world.metrics->append(
      {{{"eu-west-1", "/aws/sagemaker/TrainingJobs", "loss", {{"TrainingJobName", "job"}}},
        observe::sample_of(start, 0.25)}}));
  world.clock.advance(5s);
  job = std::make_shared<domain::Job>(*job);
  job->state = domain::JobState::failed;
  job->transitions.back().end = start + 1s;
  job->transitions.push_back(
      {domain::Phase::failed, "Training job failed", start + 5s, start + 5s});
  job->failure_reason = "AlgorithmError: out of ideas, exit code: 3";
  job->training_start = start;
  job->training_end = start + 4500ms;
  domain::Attempt first, second;
  first.training_started = start;
  first.ended = start + 1s;
  second.training_started = start + 2500ms;
  second.ended = start + 4500ms;
  job->attempts = {first, second};
  world.control.jobs[key] = job;
  const Json done = describe();
  EXPECT_EQ(done["TrainingJobStatus"], "Failed");
  EXPECT_EQ(done["SecondaryStatus"], "Failed");
  EXPECT_EQ(done["FailureReason"], "AlgorithmError: out of ideas, exit code: 3");
  EXPECT_EQ(done["TrainingTimeInSeconds"], 5);
  EXPECT_EQ(done["BillableTimeInSeconds"], 3) << "the wait is not billed";
  EXPECT_EQ(done["SecondaryStatusTransitions"][0]["StatusMessage"],
            "waiting for 2 CPUs, which other holds")
      << "the note is in the last one";
  EXPECT_EQ(done["FinalMetricDataList"],
            Json::parse(R"([{"MetricName":"loss","Value":0.25,"Timestamp":1795167900}])"));
  EXPECT_EQ(world.json("SageMaker.StopTrainingJob", R"({"TrainingJobName":"job"})").message(),
            "The request was rejected because the training job is in status Failed.");
}

TEST(TrainingJobs, NameTheHostsThatAStopWaitsFor) {
  DispatchServer world;
  ASSERT_EQ(world.json("SageMaker.CreateTrainingJob", create_body("job")).status, 200);
  const domain::JobKey key{"eu-west-1", "job"};
  auto job = std::make_shared<domain::Job>(*world.control.jobs[key]);
  job->state = domain::JobState::stopping;
  job->transitions = {
      {domain::Phase::stopping, "Stopping the training job", world.clock.now(), {}}};
  job->stop_requested = world.clock.now();  // 09:45:00 UTC
  job->stop_grace = 120s;
  job->attempts.emplace_back();
  job->attempts.back().hosts.resize(6);
  const auto shown = [&](size_t running) {
    auto changed = std::make_shared<domain::Job>(*job);
    for (size_t i = 0; i < running; ++i)
      changed->attempts.back().hosts[i].state = domain::HostState::running;
    world.control.jobs[key] = changed;
    const Json own =
        world.json("Trainyard.DescribeJob", R"({"JobName":"job"})", "trainyard").json();
    const Json described =
        world.json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"job"})").json();
    const std::string why = own.value("WaitReason", "");
    EXPECT_EQ(described["SecondaryStatusTransitions"][0]["StatusMessage"],
              "Stopping the training job" + (why.empty() ? "" : ". " + why));
    return why;
  };
  EXPECT_EQ(shown(0), "");
  EXPECT_EQ(shown(1), "waiting for algo-1 to exit after SIGTERM, until 09:47:00 UTC");
  EXPECT_EQ(shown(2), "waiting for algo-1 and algo-2 to exit after SIGTERM, until 09:47:00 UTC");
  EXPECT_EQ(shown(4),
            "waiting for algo-1, algo-2, algo-3 and 1 other host to exit after SIGTERM, until "
            "09:47:00 UTC");
  job->stop_grace.reset();
  EXPECT_EQ(shown(1), "waiting for algo-1 to exit after SIGTERM") << "of an earlier version";
  job->stop_grace = 0s;
  EXPECT_EQ(shown(1), "waiting for algo-1 to exit after SIGKILL");
  job->state = domain::JobState::active;
  EXPECT_EQ(shown(1), "");
  job->attempts.back().interrupted = world.clock.now();
  job->attempts.back().notice = 30s;
  EXPECT_EQ(shown(1), "waiting for algo-1 to exit after SIGTERM, until 09:45:30 UTC");
}

TEST(TrainingJobs, ListByEveryFilter) {
  DispatchServer world;
  world.control.page.jobs.emplace_back().key = {"eu-west-1", "a"};
  world.control.page.next_token = "more";
  const Json reply =
      world
          .json(
              "SageMaker.ListTrainingJobs",
              R"({"NameContains":"x","StatusEquals":"InProgress","SortBy":"Name","SortOrder":"Ascending","MaxResults":3,)"
              R"("NextToken":"t","CreationTimeAfter":1,"CreationTimeBefore":2,"LastModifiedTimeAfter":3,"LastModifiedTimeBefore":4})")
          .json();
  EXPECT_EQ(reply["NextToken"], "more");
  EXPECT_EQ(reply["TrainingJobSummaries"][0]["TrainingJobName"], "a");
  const auto& query = world.control.queries.at(0);
  EXPECT_EQ(query.region, "eu-west-1");
  EXPECT_EQ(query.name_contains, "x");
  EXPECT_EQ(query.states, (std::vector{domain::JobState::waiting, domain::JobState::active}));
  EXPECT_EQ(query.sort, ledger::JobQuery::Sort::name);
  EXPECT_FALSE(query.descending);
  EXPECT_EQ(query.jobs_max, 3u);
  EXPECT_EQ(query.token, "t");
  EXPECT_EQ(query.created_after, from_milliseconds(1000));
  EXPECT_EQ(query.modified_before, from_milliseconds(4000));
  world.json("SageMaker.ListTrainingJobs", "{}");
  EXPECT_EQ(world.control.queries.at(1).jobs_max, 10u);
  EXPECT_TRUE(world.control.queries.at(1).descending);
}

TEST(TrainingJobs, AddListAndDeleteTags) {
  DispatchServer world;
  const std::string arn = world
                              .json("SageMaker.CreateTrainingJob",
                                    create_body("job", R"(,"Tags":[{"Key":"team","Value":"a"}])"))
                              .json()["TrainingJobArn"];
  const auto call = [&](const std::string& operation, const std::string& more) {
    return world.json("SageMaker." + operation, R"({"ResourceArn":")" + arn + "\"" + more + "}")
        .json();
  };
  EXPECT_EQ(
      call("AddTags", R"(,"Tags":[{"Key":"team","Value":"b"},{"Key":"x","Value":""}])")["Tags"]
          .size(),
      2u);
  call("DeleteTags", R"(,"TagKeys":["team"])");
  EXPECT_EQ(call("ListTags", "")["Tags"], Json::parse(R"([{"Key":"x","Value":""}])"));
  EXPECT_EQ(call("AddTags", R"(,"Tags":[{"Key":"aws:x","Value":""}])")["__type"],
            "ValidationException");
  EXPECT_EQ(
      world
          .json("SageMaker.ListTags",
                R"({"ResourceArn":"arn:aws:sagemaker:eu-west-1:123456789012:training-job/none"})")
          .message(),
      "Requested resource not found.");
  EXPECT_EQ(world
                .json("SageMaker.ListTags",
                      R"({"ResourceArn":"arn:aws:sagemaker:eu-west-1:123456789012:model/none"})")
                .code(),
            "ValidationException");
}

TEST(TrainingJobs, ReportAllViolationsInOneMessage) {
  DispatchServer world;
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
       {"Value '-bad-' at 'trainingJobName' failed to satisfy constraint: Member must satisfy "
        "regular expression pattern: ",
        "Value 'x' at 'roleArn' failed to satisfy constraint: Member must have length greater than "
        "or equal to 20",
        "Value null at 'outputDataConfig.s3OutputPath' failed to satisfy constraint: Member must "
        "not be null",
        "Value 'Fast' at 'algorithmSpecification.trainingInputMode' failed to satisfy constraint: "
        "Member must satisfy enum value set: [",
        "Value 'a b' at 'inputDataConfig.1.member.channelName' failed to satisfy constraint: ",
        "at 'hyperParameters' failed to satisfy constraint: Map value must satisfy constraint: "
        "[Member must have length less than or equal to 2500"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(TrainingJobs, SuggestTheNearestInstanceType) {
  DispatchServer world;
  const std::string text =
      world
          .json(
              "SageMaker.CreateTrainingJob",
              create_body(
                  "job",
                  R"(,"ResourceConfig":{"InstanceType":"ml.m5.larg","InstanceCount":1,"VolumeSizeInGB":1})"))
          .message();
  EXPECT_TRUE(
      text.starts_with("1 validation error detected: Value 'ml.m5.larg' at "
                       "'resourceConfig.instanceType' failed to satisfy constraint: Member "
                       "must satisfy enum value set: [ml."))
      << text;
  EXPECT_TRUE(text.ends_with(" more]. Did you mean ml.m5.large?")) << text;
  EXPECT_LT(text.size(), 300u) << "not every instance type";
}

TEST(TrainingJobs, ReportASingleViolationInTheSingular) {
  DispatchServer world;
  EXPECT_EQ(
      world.json("SageMaker.DescribeTrainingJob", "{}").message(),
      "1 validation error detected: Value null at 'trainingJobName' failed to satisfy constraint: "
      "Member must not be null");
}

TEST(Bodies, RejectMalformedJsonWithASerializationException) {
  DispatchServer world;
  for (const std::string body :
       {"{", "[1]", R"({"TrainingJobName":5})", R"({"TrainingJobName":{}})", "\xff\xfe", "nul",
        R"({"MaxResults":"1"})", R"({"CreationTimeAfter":true})",
        R"({"CreationTimeAfter":1e300})"}) {
    const auto reply = world.json("SageMaker.ListTrainingJobs", body);
    const bool named = body.find("TrainingJobName") != std::string::npos;
    if (named) {
      EXPECT_EQ(world.json("SageMaker.DescribeTrainingJob", body).code(), "SerializationException")
          << body;
    } else {
      EXPECT_EQ(reply.code(), "SerializationException") << body;
      EXPECT_EQ(reply.status, 400);
    }
  }
  EXPECT_EQ(world.json("SageMaker.ListTrainingJobs", std::string(5000, '[')).code(),
            "SerializationException");
}

TEST(Log, HasTheRequestId) {
  DispatchServer world;
  std::vector<std::string> lines;
  set_log([&](Level, std::string_view line) { lines.emplace_back(line); }, world.clock,
          Level::info);
  const auto reply = world.json("SageMaker.ListTrainingJobs", "{}");
  static TestClock later{
      in_memory::kStart};  // static, since the log keeps the clock after this test
  set_log({}, later, Level::warning);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("api: ListTrainingJobs"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("request=" + std::string(reply.headers.get("x-amzn-requestid"))),
            std::string::npos)
      << lines[0];
  EXPECT_NE(lines[0].find("region=eu-west-1"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("status=200"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace trainyard::api
