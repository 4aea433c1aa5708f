// Tests requests whose jobs name a role by the ARN of another account, or with a path: everywhere,
// such a job has this account's role.
#include <gtest/gtest.h>

#include "dispatch/testing/tenants.hpp"

namespace trainyard::api {
namespace {

constexpr const char* kLab = "arn:aws:iam::123456789012:role/lab";
constexpr const char* kLabOfAnother = "arn:aws:iam::999999999999:role/lab";
constexpr const char* kDirectory = "fs-0123456789abcdef0";

struct JobRole : testing::Test {
  TestTenants tenants;
  in_memory::Signing eve;

  JobRole() {
    // The lists have accounts of their own.
    tenants.settings.file_systems[kDirectory] = {.directory = "/srv/fsx",
                                                 .roles = {"arn:aws:iam::111122223333:role/lab"}};
    tenants.settings.volumes["/fsx"] = {.directory = "/srv/fsx", .roles = {kLabOfAnother}};
    tenants.open();
    eve = tenants.add_user("eve", kAllowEverything);
  }

  in_memory::Reply create(const std::string& name, const std::string& role) {
    return tenants.json(
        "SageMaker.CreateTrainingJob",
        R"({"TrainingJobName":")" + name +
            R"(","AlgorithmSpecification":{"TrainingImage":"python","TrainingInputMode":"File"},"RoleArn":")" +
            role +
            R"(","InputDataConfig":[{"ChannelName":"train","DataSource":{"FileSystemDataSource":)"
            R"({"FileSystemId":"fs-0123456789abcdef0","FileSystemType":"EFS","FileSystemAccessMode":"ro","DirectoryPath":"/"}}}],)"
            R"("OutputDataConfig":{"S3OutputPath":"s3://models/"},"ResourceConfig":{"InstanceType":"ml.m5.large","InstanceCount":1,"VolumeSizeInGB":5},)"
            R"("StoppingCondition":{"MaxRuntimeInSeconds":600}})",
        "sagemaker", eve);
  }
  std::string role_of(const std::string& name) {
    return tenants.control.jobs.at({"eu-west-1", name})->spec.role_arn;
  }
  in_memory::Reply register_definition(const std::string& name, const std::string& role) {
    return tenants.batch(
        "registerjobdefinition",
        R"({"jobDefinitionName":")" + name +
            R"(","type":"container","containerProperties":{"image":"machine","command":["true"],)"
            R"("resourceRequirements":[{"type":"VCPU","value":"1"},{"type":"MEMORY","value":"64"}],)"
            R"("volumes":[{"name":"v","host":{"sourcePath":"/fsx"}}],"mountPoints":[{"sourceVolume":"v","containerPath":"/v"}],)"
            R"("jobRoleArn":")" +
            role + R"("}})",
        eve);
  }
};

TEST_F(JobRole, IsThisAccountsForATrainingJobWithAnyAccount) {
  ASSERT_EQ(create("own", kLab).status, 200);
  const auto created = create("other", kLabOfAnother);
  ASSERT_EQ(created.status, 200) << created.body;
  EXPECT_EQ(role_of("own"), kLab);
  EXPECT_EQ(role_of("other"), kLab);
  const auto refused = create("neither", "arn:aws:iam::999999999999:role/labs");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("user eve may not use fs-0123456789abcdef0"), std::string::npos)
      << refused.body;
}

TEST_F(JobRole, IsThisAccountsForABatchJobWithAnyAccount) {
  EXPECT_EQ(register_definition("own", kLab).status, 200);
  EXPECT_EQ(register_definition("other", kLabOfAnother).status, 200);
  const auto refused = register_definition("neither", "arn:aws:iam::999999999999:role/labs");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("user eve may not use /fsx"), std::string::npos) << refused.body;
  const auto submitted = tenants.batch(
      "submitjob", R"({"jobName":"one","jobQueue":"q","jobDefinition":"other"})", eve);
  ASSERT_EQ(submitted.status, 200) << submitted.body;
  const auto is_one = [](const auto& entry) { return entry.second->spec.display_name == "one"; };
  const auto one = std::ranges::find_if(tenants.control.jobs, is_one);
  ASSERT_NE(one, tenants.control.jobs.end());
  EXPECT_EQ(one->second->spec.role_arn, kLab);
}

TEST_F(JobRole, HasThePathOfTheDefinedRole) {
  policy::Role lab;
  lab.name = "lab", lab.path = "/team/", lab.id = "AROAlab";
  lab.trust =
      document(trust(R"({"Service":["sagemaker.amazonaws.com","ecs-tasks.amazonaws.com"]})"),
               policy::PolicyKind::trust);
  tenants.identities->put(lab);
  // The list names the role without a path, so it names another role now.
  for (const char* written : {kLab, kLabOfAnother, "arn:aws:iam::123456789012:role/any/lab"})
    EXPECT_NE(create("closed", written).body.find("may not use"), std::string::npos) << written;
  tenants.settings.file_systems[kDirectory].roles = {"arn:aws:iam::123456789012:role/team/*"};
  tenants.open();
  ASSERT_EQ(create("with-path", kLabOfAnother).status, 200);
  EXPECT_EQ(role_of("with-path"), "arn:aws:iam::123456789012:role/team/lab");
}

TEST_F(JobRole, MustBeTheArnOfARole) {
  // The model's pattern allows the first two, whose name a list could have.
  for (const char* written :
       {"arn:aws:iam::123456789012:rolex/lab", "arn:aws:iam::123456789012:role/lab/"}) {
    const auto refused = create("malformed", written);
    EXPECT_EQ(refused.status, 400) << written;
    EXPECT_NE(refused.body.find("is not the ARN of a role"), std::string::npos) << refused.body;
  }
  EXPECT_EQ(register_definition("plain", "x:role/lab").status, 200);
  const auto refused = tenants.batch(
      "submitjob", R"({"jobName":"one","jobQueue":"q","jobDefinition":"plain"})", eve);
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("jobRoleArn: 'x:role/lab' is not the ARN of a role"),
            std::string::npos)
      << refused.body;
}

}  // namespace
}  // namespace trainyard::api
