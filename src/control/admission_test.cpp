#include "control/admission.hpp"

#include <gtest/gtest.h>

namespace trainyard::control {
namespace {

using namespace domain;

const std::string kRegion = "eu-west-1";

BatchYard yard_of(std::vector<CapacityLimit> limits, int64_t licences = 2, bool replenishable = true) {
  BatchYard yard;
  ServiceEnvironment environment;
  environment.key = {kRegion, "box"};
  environment.limits = std::move(limits);
  put(yard, NounChange::create, environment);
  JobQueue queue;
  queue.key = {kRegion, "q"};
  queue.service = true;
  queue.environments = {"box"};
  put(yard, NounChange::create, queue);
  ConsumableResource resource;
  resource.key = {kRegion, "licences"};
  resource.total = licences;
  resource.replenishable = replenishable;
  put(yard, NounChange::create, resource);
  return yard;
}

std::shared_ptr<Job> service_job(JobNumber number, uint32_t hosts) {
  auto job = std::make_shared<Job>();
  job->number = number;
  job->key = {kRegion, "job" + std::to_string(number)};
  InstanceGroup group;
  group.instance_type = "ml.m5.large";
  group.count = hosts;
  job->spec.groups = {group};
  job->spec.batch.emplace().service = true;
  job->spec.batch->queue = "q";
  return job;
}

std::shared_ptr<Job> consumer(JobNumber number, int64_t quantity) {
  auto job = service_job(number, 1);
  job->spec.batch->service = false;
  job->spec.batch->name = "consumer";
  job->spec.batch->consumes = {{"licences", quantity}};
  return job;
}

void run(Job& job) {
  job.state = JobState::active;
  job.attempts.emplace_back().environment = job.spec.batch->service ? "box" : "";
}

std::string text(Result<std::string> admitted) {
  return admitted ? "in " + *admitted : admitted.error().message;
}

TEST(Admission, InstancesAreCountedOverAllThatHoldThem) {
  const BatchYard yard = yard_of({{std::string(kInstancesUnit), 4}});
  auto running = service_job(1, 3), ended = service_job(2, 4);
  run(*running);
  run(*ended);
  ended->attempts.back().state = AttemptState::ended;
  Admission admission(yard, {running, ended});
  EXPECT_EQ(text(admission.admit(*service_job(3, 2))),
            "waits for 1 more instances of service environment box (needs 2, 3 of its 4 are used)");
  EXPECT_EQ(text(admission.admit(*service_job(4, 1))),
            "waits for its turn behind training-job/job3, which waits for the service environment box")
      << "though there would be room";
}

TEST(Admission, WhatIsGivenAwayIsGone) {
  const BatchYard yard = yard_of({{std::string(kInstancesUnit), 4}});
  Admission admission(yard, {});
  EXPECT_EQ(text(admission.admit(*service_job(1, 3))), "in box");
  EXPECT_EQ(text(admission.admit(*service_job(2, 1))), "in box");
  EXPECT_NE(text(admission.admit(*service_job(3, 1))).find("waits for 1 more instances"), std::string::npos);
}

TEST(Admission, WhatCanNeverBeHoldsNobodyBack) {
  const BatchYard yard = yard_of({{"ml.m5.large", 2}});
  Admission admission(yard, {});
  EXPECT_EQ(
      text(admission.admit(*service_job(1, 3))),
      "waits for 1 more ml.m5.large of service environment box (needs 3, 0 of its 2 are used): raise its "
      "maxCapacity");
  EXPECT_EQ(text(admission.admit(*service_job(2, 2))), "in box");
}

TEST(Admission, WithoutAnEnabledEnvironmentNobodyIsPlaced) {
  BatchYard yard = yard_of({{std::string(kInstancesUnit), 4}});
  yard.service_environments.begin()->second.enabled = false;
  Admission admission(yard, {});
  EXPECT_EQ(text(admission.admit(*service_job(1, 1))),
            "waits for a service environment: none of job queue q is there and enabled");
}

TEST(Admission, LicencesComeBackAndOthersOvertakeWhoWaitsForThem) {
  const BatchYard yard = yard_of({});
  auto running = consumer(1, 1);
  run(*running);
  Admission admission(yard, {running});
  EXPECT_EQ(text(admission.admit(*consumer(2, 2))),
            "waits for 1 more of consumable resource licences (needs 2, 1 of 2 are left)");
  EXPECT_EQ(
      text(admission.admit(*consumer(3, 1))),
      "waits for its turn behind job/consumer (job2), which waits for the consumable resource licences");
  EXPECT_EQ(text(admission.admit(*service_job(4, 1))), "in box");
  EXPECT_NE(text(Admission(yard, {}).admit(*consumer(5, 3))).find("raise its total quantity"),
            std::string::npos);
  EXPECT_EQ(text(Admission(yard, {}).admit(*consumer(6, 2))), "in ");
}

TEST(Admission, WhatIsUsedUpWasTakenAtTheStart) {
  const BatchYard yard = yard_of({}, 2, false);
  auto running = consumer(1, 7);
  run(*running);
  Admission admission(yard, {running});
  EXPECT_EQ(text(admission.admit(*consumer(2, 2))), "in ");
  EXPECT_NE(text(admission.admit(*consumer(3, 1))).find("0 of 2 are left"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::control
