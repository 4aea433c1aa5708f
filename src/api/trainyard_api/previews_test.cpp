#include <gtest/gtest.h>

#include "auth/authorizer.hpp"
#include "operations/testing/operation_caller.hpp"
#include "protocol/json.hpp"
#include "sagemaker/operations.hpp"
#include "shapes/sagemaker.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;
namespace training = shapes::sagemaker;

void add_both(OperationTable& table, const Settings& settings, const Services& services) {
  add_previews(table, settings, services);
  sagemaker::add_operations(table, settings, services);
}

// `running-1` (bob) has half of the only machine.
struct PreviewWorld : OperationsWorld, ::testing::Test {
  PreviewWorld() : OperationsWorld(add_both) {
    settings.account = "123456789012";
    settings.find_image = [](const std::string& name) -> Result<domain::Image> {
      if (name == "trainyard/host") return domain::Image();
      return invalid("unknown image");
    };
    context.principal.kind = PrincipalKind::owner;
    context.may_describe = [this](const Context& who, const domain::JobKey& job) {
      return Authorizer(settings, services).may_describe(who, job);
    };
    control.machines = {{"box-1", 8, int64_t{64} << 30, 0}};
    domain::Job running;
    running.number = 1;
    running.key = {"eu-west-1", "running-1"};
    running.account = "123456789012";
    running.spec.principal = "bob";
    running.spec.max_runtime_seconds = 600;
    running.spec.groups = {{"homogeneousCluster", "ml.m5.xlarge", 1}};
    running.created = in_memory::kStart;
    running.state = domain::JobState::active;
    domain::Host host;
    host.state = domain::HostState::running;
    host.machine = "box-1";
    host.share = {4, int64_t{16} << 30, 0};
    running.attempts = {{.number = 1,
                         .state = domain::AttemptState::running,
                         .hosts = {host},
                         .started = clock.now(),
                         .training_started = clock.now()}};
    control.jobs[running.key] = std::make_shared<const domain::Job>(running);
  }
  static Json request(const std::string& name, int64_t hosts = 1) {
    return {{"TrainingJobName", name},
            {"RoleArn", "arn:aws:iam::123456789012:role/trainer"},
            {"AlgorithmSpecification",
             {{"TrainingImage", "trainyard/host"}, {"TrainingInputMode", "File"}}},
            {"OutputDataConfig", {{"S3OutputPath", "s3://yard/models"}}},
            {"ResourceConfig",
             {{"InstanceType", "ml.m5.xlarge"}, {"InstanceCount", hosts}, {"VolumeSizeInGB", 1}}},
            {"StoppingCondition", {{"MaxRuntimeInSeconds", 7200}}}};
  }
  static own::PreviewJobRequest preview_of(const Json& json, bool with_changes = false) {
    own::PreviewJobRequest out;
    out.training_job_request = dump(json);
    out.with_changes = with_changes;
    return out;
  }
  own::PreviewJobResponse previewed(const Json& json, bool with_changes = false) {
    auto out = call<own::PreviewJob>(preview_of(json, with_changes));
    EXPECT_TRUE(out) << out.failure(own::kService).message;
    return out ? *out : own::PreviewJobResponse();
  }
  std::string creation_refusal(const Json& json) {
    training::CreateTrainingJobRequest decoded;
    EXPECT_TRUE(read_json(*training::CreateTrainingJob::shape().input, dump(json), &decoded));
    return refusal<training::CreateTrainingJob>(decoded);
  }
  void as_ann() {
    context.principal = {.account = "123456789012",
                         .arn = "arn:aws:iam::123456789012:user/ann",
                         .name = "ann",
                         .kind = PrincipalKind::user};
  }
};

TEST_F(PreviewWorld, ReportsAnImmediateStartAndTheCost) {
  const auto found = previewed(request("next"));
  EXPECT_EQ(found.starts_now, true);
  EXPECT_EQ(found.start_time, clock.now());
  EXPECT_FALSE(found.wait_reason);
  EXPECT_FALSE(found.changes);
  EXPECT_EQ(found.cost_per_hour->currency, "USD");
  const double hour = std::stod(*found.cost_per_hour->amount);
  EXPECT_GT(hour, 0);
  EXPECT_DOUBLE_EQ(std::stod(*found.cost_at_max_runtime->amount), 2 * hour);
  EXPECT_EQ(control.jobs.size(), 1u) << "nothing is created";
}

TEST_F(PreviewWorld, TellsWhyAJobWouldWaitAndUntilWhen) {
  const auto found = previewed(request("next", 2), true);
  EXPECT_EQ(found.starts_now, false);
  EXPECT_NE(found.wait_reason->find("held by training-job/running-1 (4)"), std::string::npos);
  ASSERT_TRUE(found.start_time);
  EXPECT_GT(*found.start_time, clock.now() + 600s);
  EXPECT_EQ(found.complete, true);
  std::string kinds;
  for (const own::StartChange& change : *found.changes) kinds += *change.kind + " ";
  EXPECT_NE(kinds.find("ShrinkGang"), std::string::npos) << kinds;
  EXPECT_NE(kinds.find("StopRunningJob"), std::string::npos) << kinds;
}

TEST_F(PreviewWorld, ChargesSpotJobsTheSpotPrice) {
  Json spot = request("next", 2);
  spot["EnableManagedSpotTraining"] = true;
  spot["StoppingCondition"]["MaxWaitTimeInSeconds"] = 7200;
  const auto found = previewed(spot);
  EXPECT_LT(std::stod(*found.cost_per_hour->amount),
            std::stod(*found.cost_per_hour->on_demand_amount));
}

TEST_F(PreviewWorld, RejectsRequestsWithTheSameErrorsAsCreation) {
  Json no_image = request("next");
  no_image["AlgorithmSpecification"]["TrainingImage"] = "absent";
  Json two_tags = request("next");
  two_tags["Tags"] = Json::array({{{"Key", "a"}, {"Value", "1"}}, {{"Key", "A"}, {"Value", "2"}}});
  Json long_run = request("next");
  long_run["StoppingCondition"]["MaxRuntimeInSeconds"] = 99'999'999;
  const Json taken = request("running-1");
  for (const Json& wrong : {no_image, two_tags, long_run, taken}) {
    const std::string expected = creation_refusal(wrong);
    EXPECT_NE(expected, "it succeeded");
    EXPECT_EQ(refusal<own::PreviewJob>(preview_of(wrong)), expected);
  }
  settings.check_disk_space = [] { return Result<void>(exhausted("the disk is full")); };
  EXPECT_EQ(refusal<own::PreviewJob>(preview_of(request("next"))),
            creation_refusal(request("next")));
}

TEST_F(PreviewWorld, ChecksTheConstraintsOfTheModel) {
  Json wrong = request("-");
  wrong.erase("RoleArn");
  const std::string refused = refusal<own::PreviewJob>(preview_of(wrong));
  EXPECT_NE(refused.find("2 validation errors detected"), std::string::npos) << refused;
  EXPECT_NE(refused.find("trainingJobName"), std::string::npos) << refused;
  EXPECT_NE(refused.find("roleArn"), std::string::npos) << refused;
  own::PreviewJobRequest no_json;
  no_json.training_job_request = "{\"TrainingJobName\": ";
  EXPECT_EQ(refusal<own::PreviewJob>(no_json).substr(0, 22), "SerializationException");
  no_json.training_job_request = std::string(50'000, '[');
  EXPECT_EQ(refusal<own::PreviewJob>(no_json).substr(0, 22), "SerializationException");
}

// The permission to preview does not include the permission to create.
TEST_F(PreviewWorld, NeedsThePermissionsOfTheCreation) {
  as_ann();
  const std::string refused = refusal<own::PreviewJob>(preview_of(request("next")));
  EXPECT_NE(refused.find("is not authorized to perform: sagemaker:CreateTrainingJob on resource: "
                         "arn:aws:sagemaker:eu-west-1:123456789012:training-job/next"),
            std::string::npos)
      << refused;
  // Principals that may not create a job do not learn whether its name is used.
  EXPECT_NE(refusal<own::PreviewJob>(preview_of(request("running-1"))).find("not authorized"),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
