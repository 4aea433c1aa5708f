// Tests the rights of principals on Batch jobs and their definitions: shared directories, and tags
// as conditions.
#include <gtest/gtest.h>

#include "dispatch/testing/tenants.hpp"

namespace trainyard::api {
namespace {

using in_memory::Signing;

std::string definition(const std::string& source_path, const std::string& more = "") {
  return R"({"jobDefinitionName":"train","type":"container","containerProperties":{"image":"machine","command":["true"],)"
         R"("resourceRequirements":[{"type":"VCPU","value":"1"},{"type":"MEMORY","value":"64"}],)"
         R"("volumes":[{"name":"v","host":{"sourcePath":")" +
         source_path + R"("}}],"mountPoints":[{"sourceVolume":"v","containerPath":"/v"}])" + more +
         "}}";
}

TEST(SharedDirectories, NeedTheirPermissionInDefinitions) {
  TestTenants tenants;
  tenants.settings.volumes["/fsx"] = {.directory = "/srv/fsx", .users = {"ada"}, .roles = {"lab"}};
  tenants.settings.volumes["/open"] = {.directory = "/srv/open"};
  tenants.open();
  const Signing ada = tenants.add_user("ada", kAllowEverything),
                eve = tenants.add_user("eve", kAllowEverything);
  const auto refused = tenants.batch("registerjobdefinition", definition("/fsx"), eve);
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_EQ(refused.headers.get("x-amzn-errortype"), "ClientException");
  EXPECT_NE(refused.body.find("user eve may not use /fsx"), std::string::npos) << refused.body;
  EXPECT_EQ(tenants.batch("registerjobdefinition", definition("/fsx/deeper"), eve).status, 400);
  EXPECT_TRUE(tenants.control.definitions_of.empty());
  EXPECT_EQ(tenants.batch("registerjobdefinition", definition("/open"), eve).status, 200);
  EXPECT_EQ(tenants.batch("registerjobdefinition", definition("/fsx"), ada).status, 200);
  const std::string role = R"(,"jobRoleArn":"arn:aws:iam::123456789012:role/lab")";
  const auto by_role = tenants.batch("registerjobdefinition", definition("/fsx", role), eve);
  EXPECT_EQ(by_role.status, 200) << by_role.body;
}

std::string allow_if(const std::string& action, const std::string& condition) {
  return allow("\"" + action + "\"", "\"*\"", R"(,"Condition":)" + condition);
}

TEST(TagConditions, ApplyToTheTagsOfRequests) {
  TestTenants tenants;
  const std::string team =
      R"({"StringEquals":{"aws:RequestTag/team":"a"},"ForAllValues:StringEquals":{"aws:TagKeys":["team"]}})";
  const Signing ann = tenants.add_user("ann", allow_if("*", team));
  const auto create = [&](const std::string& name, const std::string& tags) {
    return tenants
        .json(
            "SageMaker.CreateTrainingJob",
            R"({"TrainingJobName":")" + name +
                R"(","AlgorithmSpecification":{"TrainingImage":"python","TrainingInputMode":"File"},"RoleArn":")" +
                kTrainer +
                R"(","OutputDataConfig":{"S3OutputPath":"s3://models/"},"ResourceConfig":{"InstanceType":"ml.m5.large","InstanceCount":1,"VolumeSizeInGB":5},)"
                R"("StoppingCondition":{"MaxRuntimeInSeconds":600})" +
                tags + "}",
            "sagemaker", ann)
        .code();
  };
  EXPECT_EQ(create("no-tags", ""), "AccessDeniedException");
  EXPECT_EQ(create("other-team", R"(,"Tags":[{"Key":"team","Value":"b"}])"),
            "AccessDeniedException");
  EXPECT_EQ(
      create("more-tags", R"(,"Tags":[{"Key":"team","Value":"a"},{"Key":"admin","Value":"x"}])"),
      "AccessDeniedException");
  EXPECT_EQ(create("tagged", R"(,"Tags":[{"Key":"team","Value":"a"}])"), "");

  const auto submit = [&](const std::string& more) {
    return tenants
        .batch("submitjob",
               R"({"jobName":"one","jobQueue":"q","jobDefinition":"train")" + more + "}", ann)
        .body;
  };
  for (const char* tags : {"", R"(,"tags":{"team":"b"})", R"(,"tags":{"team":"a","admin":"x"})"})
    EXPECT_NE(submit(tags).find("is not authorized to perform: batch:SubmitJob"), std::string::npos)
        << tags;
  EXPECT_NE(submit(R"(,"tags":{"team":"a"})").find("does not exist"), std::string::npos)
      << "it is allowed, and there is no such definition";
}

// Adds a user that may do everything except where `condition` holds.
Signing denied_if(TestTenants& tenants, const std::string& condition) {
  policy::User made = *tenants.identities->find_user("admin");
  made.name = "not-a", made.id = "AIDAnot";
  made.inline_policies["deny"] = document(
      R"({"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"*","Resource":"*","Condition":)" +
      condition + "}}");
  tenants.identities->put(made);
  tenants.identities->put(
      policy::AccessKey{.id = "AKIAnot", .user = "not-a", .secret = "not-secret"});
  return {{"AKIAnot", "not-secret", ""}, "eu-west-1"};
}

TEST(TagConditions, ApplyToTheTagsOfResources) {
  TestTenants tenants;
  const Signing admin = tenants.add_user("admin", kAllowEverything);
  std::string tagged = definition("/open");
  tagged.insert(tagged.size() - 1, R"(,"tags":{"team":"a"})");
  tenants.settings.volumes["/open"] = {.directory = "/srv/open"};
  tenants.open();
  ASSERT_EQ(tenants.batch("registerjobdefinition", tagged, admin).status, 200);
  tenants.control.tags_of["arn:aws:batch:eu-west-1:123456789012:job-queue/q"] = {{"team", "a"}};
  tenants.control.tags_of["arn:aws:sagemaker:eu-west-1:123456789012:training-job/mnist-1"] = {
      {"team", "a"}};
  domain::Job child = tenants.job("id-7", 40);
  child.spec.queue.emplace();
  child.spec.contract = domain::Contract::plain;
  child.spec.display_name = "array";
  tenants.put_job(child);
  ASSERT_TRUE(child.spec.contract == domain::Contract::plain);
  tenants.control.tags_of[control::job_arn(child)] = {{"team", "a"}};
  const std::string in_team = R"({"StringEquals":{"aws:ResourceTag/team":"a"}})";
  const Signing ann = tenants.add_user("ann", allow_if("*", in_team));
  const Signing not_a = denied_if(tenants, in_team);

  struct Request {
    const char *target, *body;
  };
  const Request requests[] = {{"SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"mnist-1"})"},
                              {"Trainyard.DescribeJob", R"({"JobName":"mnist-1"})"},
                              {"SageMaker.StopTrainingJob", R"({"TrainingJobName":"mnist-1"})"}};
  for (const Request& request : requests) {
    const std::string service =
        std::string_view(request.target).starts_with("S") ? "sagemaker" : "trainyard";
    EXPECT_FALSE(is_denied(tenants.json(request.target, request.body, service, ann)))
        << request.target;
    EXPECT_TRUE(is_denied(tenants.json(request.target, request.body, service, not_a)))
        << request.target;
    EXPECT_TRUE(is_denied(tenants.json("SageMaker.DescribeTrainingJob",
                                       R"({"TrainingJobName":"rival"})", "sagemaker", ann)));
  }
  // A definition's name stands for its newest revision. A child and a node have the tags of their
  // job.
  for (const char* name : {"train", "train:1"}) {
    const std::string body =
        std::string(R"({"jobName":"one","jobQueue":"q","jobDefinition":")") + name + "\"}";
    EXPECT_FALSE(is_denied(tenants.batch("submitjob", body, ann))) << name;
    EXPECT_TRUE(is_denied(tenants.batch("submitjob", body, not_a))) << name;
  }
  for (const char* id : {"id-7", "id-7:3", "id-7#0"}) {
    const std::string body = std::string(R"({"jobs":[")") + id + "\"]}";
    EXPECT_FALSE(is_denied(tenants.batch("describejobs", body, ann))) << id;
    EXPECT_TRUE(is_denied(tenants.batch("describejobs", body, not_a))) << id;
  }
}

TEST(BatchRights, KeepTagsOfTrainingJobsAndServiceJobsApart) {
  TestTenants tenants;
  const Signing bob = tenants.add_user("bob", allow(R"("batch:*")", R"("*")"));
  const std::string path =
      "tags/" + percent_encode("arn:aws:batch:eu-west-1:123456789012:service-job/mnist-1");
  const auto tags = [&] {
    size_t count = 0;
    for (const auto& [arn, of_it] : tenants.control.tags_of) count += of_it.size();
    return count;
  };
  const size_t before = tags();
  const auto tagged = tenants.batch(path, R"({"tags":{"team":"b"}})", bob);
  EXPECT_EQ(tagged.status, 400) << tagged.body;
  EXPECT_NE(tagged.body.find("Resource not found"), std::string::npos) << tagged.body;
  EXPECT_EQ(tags(), before);
}

TEST(BatchRights, NeedTheRightToWriteTheLogGroupsOfDefinitions) {
  TestTenants tenants;
  tenants.settings.volumes["/open"] = {.directory = "/srv/open"};
  tenants.open();
  const auto with_group = [](const std::string& group) {
    return definition("/open",
                      R"(,"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":")" +
                          group + R"(","awslogs-stream-prefix":"mnist-1"}})");
  };
  const Signing bob = tenants.add_user("bob", allow(R"("batch:*")", R"("*")"));
  const Signing writer = tenants.add_user(
      "writer", allow(R"("batch:*","logs:CreateLogStream","logs:PutLogEvents")", R"("*")"));
  const auto refused =
      tenants.batch("registerjobdefinition", with_group("/aws/sagemaker/TrainingJobs"), bob);
  expect_access_denied(refused.body, "logs:CreateLogStream");
  EXPECT_TRUE(is_denied(tenants.batch("registerjobdefinition", with_group("payments"), bob)));
  EXPECT_EQ(tenants.batch("registerjobdefinition", with_group("/aws/batch/job"), bob).status, 200);
  EXPECT_EQ(tenants.batch("registerjobdefinition", with_group("payments"), writer).status, 200);
}

TEST(BatchRights, NeedTheRightsOnTheEnvironmentsOfQueues) {
  TestTenants tenants;
  const Signing ann =
      tenants.add_user("ann", allow(R"("batch:*")", R"("arn:aws:batch:*:*:*/ann-*")"));
  const auto create = [&](const std::string& environment) {
    return tenants.batch("createjobqueue",
                         R"({"jobQueueName":"ann-q","priority":1,"computeEnvironmentOrder":[)"
                         R"({"order":1,"computeEnvironment":")" +
                             environment + R"("}]})",
                         ann);
  };
  expect_access_denied(create("bob-gpus").body, "compute-environment/bob-gpus");
  expect_access_denied(
      create("arn:aws:batch:eu-west-1:123456789012:compute-environment/bob-gpus").body,
      "compute-environment/bob-gpus");
  EXPECT_FALSE(is_denied(create("ann-cpus")));
  expect_access_denied(tenants
                           .batch("updatejobqueue",
                                  R"({"jobQueue":"ann-q","computeEnvironmentOrder":[)"
                                  R"({"order":1,"computeEnvironment":"bob-gpus"}]})",
                                  ann)
                           .body,
                       "compute-environment/bob-gpus");
}

}  // namespace
}  // namespace trainyard::api
