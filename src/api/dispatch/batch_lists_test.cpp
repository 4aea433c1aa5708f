// Tests that principals that may list but not describe jobs and definitions of Batch see no
// environments, commands, parameters or output of jobs.
#include <gtest/gtest.h>

#include "dispatch/testing/tenants.hpp"

namespace trainyard::api {
namespace {

using in_memory::Signing;

// Every field that may contain a secret has this value.
constexpr const char* kSecret = "hunter2";
constexpr const char* kLister =
    R"("batch:List*","batch:GetJobQueueSnapshot","batch:DescribeJobQueues","trainyard:ListJobs","sagemaker:ListTrainingJobs")";

std::string container(const std::string& word) {
  return R"({"image":"machine","command":["train",")" + word +
         R"("],"environment":[{"name":"TOKEN","value":")" + word +
         R"("}],"resourceRequirements":[{"type":"VCPU","value":"1"},{"type":"MEMORY","value":"64"}]})";
}

struct Lists : TestTenants {
  Lists() {
    ok("createcomputeenvironment",
       R"({"computeEnvironmentName":"e","type":"MANAGED","computeResources":{"type":"EC2","minvCpus":0,"maxvCpus":64}})");
    ok("createjobqueue",
       R"({"jobQueueName":"q","priority":1,"computeEnvironmentOrder":[{"order":1,"computeEnvironment":"e"}]})");
    ok("createconsumableresource",
       R"({"consumableResourceName":"licence","totalQuantity":5,"resourceType":"REPLENISHABLE"})");
    ok("registerjobdefinition",
       R"({"jobDefinitionName":"secret","type":"container","parameters":{"p":"hunter2"},"containerProperties":)" +
           container(kSecret) + "}");
    ok("registerjobdefinition",
       R"({"jobDefinitionName":"team-a","type":"container","containerProperties":)" +
           container("harmless") + "}");
    ok("registerjobdefinition",
       R"({"jobDefinitionName":"nodes","type":"multinode","nodeProperties":{"numNodes":2,"mainNode":0,"nodeRangeProperties":[{"targetNodes":"0:","container":)" +
           container(kSecret) + "}]}}");
  }

  Json ok(const std::string& path, const std::string& body, const Signing& by = {}) {
    const auto reply = batch(path, body, by);
    EXPECT_EQ(reply.status, 200) << path << ": " << reply.body;
    return *parse_json(reply.body);
  }
  // Submits a job, and returns a copy that a test may change.
  domain::Job submit(const std::string& more) {
    const Json made = ok("submitjob", R"({"jobName":"j","jobQueue":"q",)" + more + "}");
    return *control.jobs.at({"eu-west-1", made.at("jobId")});
  }
  // Ends the job with one attempt, and makes it the only job that lists read.
  void end(domain::Job job, domain::Fault fault, const std::string& failure) {
    job.state = domain::JobState::failed;
    job.failure_reason =
        (fault == domain::Fault::client ? "ClientError: " : "AlgorithmError: ") + failure;
    domain::Attempt attempt;
    attempt.number = 1;
    attempt.state = domain::AttemptState::ended;
    attempt.started = attempt.ended.emplace(clock.now());
    attempt.fault = fault;
    attempt.failure = failure;
    if (fault == domain::Fault::algorithm) attempt.exit_code = 1;
    attempt.hosts.resize(job.spec.hosts());
    for (domain::Host& host : attempt.hosts) {
      host.state = domain::HostState::failed;
      host.fault = fault;
      host.failure = failure;
      host.exit_code = attempt.exit_code;
    }
    job.attempts = {attempt};
    control.page.jobs = {job};
    put_job(std::move(job));
  }
  Signing lister() { return add_user("lister", allow(kLister, R"("*")")); }
};

bool discloses(const in_memory::Reply& reply) {
  return reply.body.find(kSecret) != std::string::npos;
}
const std::string kOfSecret =
    R"("jobDefinition":"secret","parameters":{"p":"hunter2"},"consumableResourcePropertiesOverride":{"consumableResourceList":[{"consumableResource":"licence","quantity":1}]},"containerOverrides":{"environment":[{"name":"MORE","value":"hunter2"}]})";
const std::string kNotStarted =
    "CannotStartContainerError: The container cannot be started: executable file `train hunter2` "
    "not found in $PATH";

TEST(BatchLists, HideAJobsContainer) {
  Lists tenants;
  const Signing lister = tenants.lister();
  const domain::Job waiting = tenants.submit(kOfSecret);
  const std::string& id = waiting.key.name;
  tenants.control.page.jobs = {waiting};
  const auto expect_nothing_disclosed = [&](const std::string& status) {
    for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
             {"listjobs", R"({"jobQueue":"q","jobStatus":")" + status + "\"}"},
             {"listjobs", R"({"jobQueue":"q","filters":[{"name":"JOB_NAME","values":["*"]}]})"},
             {"listjobsbyconsumableresource", R"({"consumableResource":"licence"})"}}) {
      const auto listed = tenants.batch(path, body, lister);
      EXPECT_EQ(listed.status, 200) << listed.body;
      EXPECT_NE(listed.body.find(id), std::string::npos) << path << " " << listed.body;
      EXPECT_FALSE(discloses(listed)) << path << " " << listed.body;
    }
    EXPECT_FALSE(discloses(tenants.batch("getjobqueuesnapshot", R"({"jobQueue":"q"})", lister)));
    const auto own = tenants.json("Trainyard.ListJobs", "{}", "trainyard", lister);
    EXPECT_NE(own.body.find(id), std::string::npos) << own.body;
    EXPECT_FALSE(discloses(own)) << own.body;
    EXPECT_FALSE(discloses(tenants.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", lister)));
  };
  expect_nothing_disclosed("RUNNABLE");
  tenants.end(waiting, domain::Fault::algorithm, "KeyError: 'hunter2'");
  expect_nothing_disclosed("FAILED");
  // The runtime's error has the first word of the command, which may be the whole command.
  tenants.end(waiting, domain::Fault::client, kNotStarted);
  expect_nothing_disclosed("FAILED");
  const Json listed = tenants.ok("listjobs", R"({"jobQueue":"q","jobStatus":"FAILED"})", lister);
  EXPECT_EQ(listed.at("jobSummaryList")[0].at("container").at("reason"),
            "CannotStartContainerError: The container cannot be started");
  tenants.end(waiting, domain::Fault::algorithm, "OutOfMemory: it was killed");
  EXPECT_EQ(tenants.ok("listjobs", R"({"jobQueue":"q","jobStatus":"FAILED"})", lister)
                .at("jobSummaryList")[0]
                .at("container")
                .at("reason"),
            "OutOfMemoryError: Container killed due to memory usage");
}

TEST(BatchLists, NeedThePermissionToDescribeEachJob) {
  Lists tenants;
  const Signing lister = tenants.lister();
  tenants.end(tenants.submit(kOfSecret), domain::Fault::client, kNotStarted);
  const std::string id = tenants.control.page.jobs[0].key.name;
  const std::string arn = "arn:aws:batch:eu-west-1:123456789012:job/" + id;
  const Signing neighbour = tenants.add_user(
      "neighbour", allow(R"("batch:DescribeJobs")", R"("arn:aws:batch:*:*:job/x*")"));
  for (const std::string& name : {id, arn, id + "#0", id + ":0", std::string("x1\",\"") + id})
    for (const Signing& by : {lister, neighbour}) {
      const auto refused = tenants.batch("describejobs", R"({"jobs":[")" + name + "\"]}", by);
      EXPECT_TRUE(is_denied(refused)) << name << " " << refused.body;
      EXPECT_FALSE(discloses(refused));
    }
  // The other services that find jobs by name do not reveal the secret either.
  const Signing others =
      tenants.add_user("others", allow(R"("sagemaker:*","trainyard:*")", R"("*")"));
  EXPECT_FALSE(
      discloses(tenants.json("SageMaker.DescribeTrainingJob",
                             R"({"TrainingJobName":")" + id + "\"}", "sagemaker", others)));
  const Signing reader =
      tenants.add_user("reader", allow(R"("batch:DescribeJobs")", "\"" + arn + "\""));
  const Json job_description = tenants.ok("describejobs", R"({"jobs":[")" + id + "\"]}", reader);
  EXPECT_EQ(job_description.at("jobs")[0].at("container").at("command")[1], kSecret);
  EXPECT_EQ(job_description.at("jobs")[0].at("container").at("reason"), kNotStarted);
}

TEST(BatchLists, HideNodes) {
  Lists tenants;
  const Signing lister = tenants.lister();
  for (const auto& [fault, failure] :
       {std::pair{domain::Fault::algorithm, std::string("KeyError: 'hunter2'")},
        std::pair{domain::Fault::client, kNotStarted}}) {
    tenants.end(tenants.submit(R"("jobDefinition":"nodes")"), fault, failure);
    const std::string id = tenants.control.page.jobs[0].key.name;
    const auto listed = tenants.batch(
        "listjobs", R"({"multiNodeJobId":")" + id + R"(","jobStatus":"FAILED"})", lister);
    EXPECT_EQ(listed.status, 200);
    EXPECT_EQ(listed.json().at("jobSummaryList").size(), 2u) << listed.body;
    EXPECT_FALSE(discloses(listed)) << listed.body;
    const auto described = tenants.batch("describejobs", R"({"jobs":[")" + id + "#1\"]}");
    EXPECT_EQ(described.json().at("jobs")[0].at("container").at("reason"), failure)
        << described.body;
  }
}

TEST(BatchLists, HideServiceJobs) {
  Lists tenants;
  const Signing lister = tenants.lister();
  for (const auto& [fault, failure, shown] :
       {std::tuple{domain::Fault::algorithm, std::string("KeyError: 'hunter2'"),
                   "AlgorithmError, exit code: 1"},
        std::tuple{
            domain::Fault::client,
            std::string(
                "The container cannot be started: executable file `train hunter2` not found"),
            "ClientError: The container cannot be started"}}) {
    domain::Job job = tenants.job("service-1", 21);
    job.spec.environment["TOKEN"] = kSecret;
    job.spec.queue.emplace();
    job.spec.display_name = "j";
    job.spec.queue->name = "q";
    job.spec.queue->request = {{"serviceRequestPayload", R"({"Environment":{"TOKEN":"hunter2"}})"}};
    tenants.end(job, fault, failure);
    const auto listed =
        tenants.batch("listservicejobs", R"({"jobQueue":"q","jobStatus":"FAILED"})", lister);
    EXPECT_EQ(listed.status, 200) << listed.body;
    EXPECT_FALSE(discloses(listed)) << listed.body;
    const std::string reason = listed.json().at("jobSummaryList").at(0).at("statusReason");
    EXPECT_TRUE(reason.ends_with(shown)) << reason;
    EXPECT_FALSE(discloses(tenants.json("Trainyard.ListJobs", "{}", "trainyard", lister)));
    const auto refused = tenants.batch("describeservicejob", R"({"jobId":"service-1"})", lister);
    EXPECT_TRUE(is_denied(refused)) << refused.body;
    EXPECT_TRUE(discloses(tenants.batch("describeservicejob", R"({"jobId":"service-1"})")));
  }
}

TEST(BatchDefinitions, AreDescribedToUsersWithThePermissionForEach) {
  Lists tenants;
  const std::string definitions = "arn:aws:batch:eu-west-1:123456789012:job-definition/";
  const Signing team = tenants.add_user(
      "team", allow(R"("batch:DescribeJobDefinitions")", "\"" + definitions + "team-a*\""));
  for (const std::string body :
       {R"({"jobDefinitions":["team-a"]})", R"({"jobDefinitions":["team-a:1"]})",
        R"({"jobDefinitionName":"team-a"})", R"({"jobDefinitionName":"team-a","status":"ACTIVE"})",
        R"({"jobDefinitions":["arn:aws:batch:eu-west-1:123456789012:job-definition/team-a:1"]})"})
    EXPECT_EQ(tenants.ok("describejobdefinitions", body, team).at("jobDefinitions").size(), 1u)
        << body;
  const std::vector<std::string> beyond = {
      "{}",
      R"({"status":"ACTIVE"})",
      R"({"jobDefinitions":[]})",
      R"({"jobDefinitions":["secret"]})",
      R"({"jobDefinitions":["secret:1"]})",
      R"({"jobDefinitions":["team-a","secret"]})",
      R"({"jobDefinitionName":"secret"})",
      R"({"jobDefinitionName":"secret","jobDefinitions":["team-a"]})",
      R"({"jobDefinitionName":"team-a","jobDefinitions":["secret"]})",
      R"({"jobDefinitions":["arn:aws:batch:eu-west-1:123456789012:job-definition/secret:1"]})",
      R"({"jobDefinitions":["arn:aws:batch:us-east-1:999999999999:job-definition/secret"]})",
      R"({"jobDefinitions":[""]})",
      R"({"jobDefinitionName":""})",
      R"({"jobDefinitions":[":1"]})",
      R"({"jobDefinitions":["arn:aws:batch:eu-west-1:123456789012:job-definition/"]})"};
  for (const Signing& by : {team, tenants.lister()})
    for (const std::string& body : beyond) {
      const auto refused = tenants.batch("describejobdefinitions", body, by);
      EXPECT_TRUE(is_denied(refused)) << body << " " << refused.body;
      EXPECT_FALSE(discloses(refused)) << body;
    }
}

TEST(BatchDefinitions, AreNotFoundByAnEmptyName) {
  Lists tenants;
  const std::string none = "arn:aws:batch:eu-west-1:123456789012:job-definition/";
  const Signing odd = tenants.add_user(
      "odd", allow(R"("batch:DescribeJobDefinitions")", "\"" + none + "\",\"" + none + ":*\""));
  for (const std::string body :
       {R"({"jobDefinitions":[""]})", R"({"jobDefinitionName":""})", R"({"jobDefinitions":[":1"]})",
        R"({"jobDefinitions":["", ":1"]})",
        R"({"jobDefinitions":["arn:aws:batch:eu-west-1:123456789012:job-definition/"]})"}) {
    const auto answer = tenants.batch("describejobdefinitions", body, odd);
    EXPECT_FALSE(discloses(answer)) << body << " " << answer.body;
    EXPECT_EQ(answer.body.find("team-a"), std::string::npos) << body;
  }
  EXPECT_EQ(tenants.ok("describejobdefinitions", "{}").at("jobDefinitions").size(), 3u);
}

TEST(BatchDefinitions, AcceptOneSpellingOfARevision) {
  Lists tenants;
  const Signing most = tenants.add_user(
      "most",
      R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"batch:*","Resource":"*"},{"Effect":"Deny","Action":"batch:*","Resource":"arn:aws:batch:*:*:job-definition/secret:1"}]})");
  EXPECT_TRUE(is_denied(
      tenants.batch("describejobdefinitions", R"({"jobDefinitions":["secret:1"]})", most)));
  for (const char* name : {"secret:01", "secret:+1", "secret:1 "}) {
    const std::string quoted = std::string("\"") + name + "\"";
    EXPECT_FALSE(discloses(
        tenants.batch("describejobdefinitions", R"({"jobDefinitions":[)" + quoted + "]}", most)))
        << name;
    const auto submitted = tenants.batch(
        "submitjob", R"({"jobName":"j","jobQueue":"q","jobDefinition":)" + quoted + "}", most);
    EXPECT_NE(submitted.status, 200) << name << submitted.body;
  }
}

}  // namespace
}  // namespace trainyard::api
