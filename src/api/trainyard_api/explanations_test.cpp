#include <gtest/gtest.h>

#include "auth/authorizer.hpp"
#include "operations/testing/operation_caller.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

// `running-1` (bob) has half of the machine, and `waiting-1` (ann) needs all of it.
struct ExplainWorld : OperationsWorld, ::testing::Test {
  ExplainWorld() : OperationsWorld(trainyard_api::add_explanations) {
    context.principal.kind = PrincipalKind::owner;
    context.may_describe = [this](const Context& who, const domain::JobKey& job) {
      return Authorizer(settings, services).may_describe(who, job);
    };
    control.machines = {{"box-1", 8, int64_t{64} << 30, 0}};
    domain::Job running = job(1, "running-1", "bob", 1);
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
    keep(running);
    keep(job(2, "waiting-1", "ann", 2));
  }
  domain::Job job(uint64_t number, const std::string& name, const std::string& who,
                  uint32_t hosts) const {
    domain::Job out;
    out.number = number;
    out.key = {"eu-west-1", name};
    out.account = "123456789012";
    out.spec.principal = who;
    out.spec.max_runtime_seconds = 600;
    out.spec.groups = {{"homogeneousCluster", "ml.m5.xlarge", hosts}};
    out.created = in_memory::kStart;
    out.transitions = {{domain::Phase::starting, "", out.created, {}}};
    return out;
  }
  void keep(const domain::Job& job) {
    control.jobs[job.key] = std::make_shared<const domain::Job>(job);
  }
  own::ExplainJobResponse explained(const std::string& name) {
    own::ExplainJobRequest request;
    request.job_name = name;
    auto out = call<own::ExplainJob>(request);
    EXPECT_TRUE(out);
    return out ? *out : own::ExplainJobResponse();
  }
  std::string described(const own::ExplainJobResponse& response) const {
    std::string all = response.wait_reason.value_or("");
    for (const own::StartChange& change : *response.changes)
      all += "\n" + *change.kind + ": " + *change.description + change.job_name.value_or("");
    return all;
  }
};

TEST_F(ExplainWorld, ListsChangesThatWouldStartAJob) {
  const auto found = explained("waiting-1");
  EXPECT_EQ(found.waiting, true);
  EXPECT_EQ(found.complete, true);
  ASSERT_TRUE(found.start_time);
  EXPECT_GT(*found.start_time, clock.now() + 600s);
  const std::string all = described(found);
  for (const char* text :
       {"held by training-job/running-1", "ShrinkGang: request 1 instance instead of 2",
        "ChangeType: request ml.m5.large (2 vCPU, 8 GiB)",
        "StopRunningJob: stop training-job/running-1, which runs",
        "AddMachines: add 1 machine like box-1 (8 vCPU, 64 GiB)"})
    EXPECT_NE(all.find(text), std::string::npos) << text << "\n" << all;
  for (const own::StartChange& change : *found.changes) EXPECT_EQ(change.now, true);
}

TEST_F(ExplainWorld, HidesJobsThatTheCallerMayNotDescribe) {
  context.principal = {.account = "123456789012",
                       .arn = "arn:aws:iam::123456789012:user/ann",
                       .name = "ann",
                       .kind = PrincipalKind::user};
  const std::string all = described(explained("waiting-1"));
  EXPECT_NE(all.find("held by another job (4)"), std::string::npos) << all;
  EXPECT_NE(all.find("ShrinkGang"), std::string::npos) << all;
  EXPECT_EQ(all.find("running-1"), std::string::npos) << all;
  EXPECT_EQ(all.find("bob"), std::string::npos) << all;
  EXPECT_EQ(all.find("StopRunningJob"), std::string::npos) << all;
}

TEST_F(ExplainWorld, TellsThatAJobDoesNotWait) {
  const auto found = explained("running-1");
  EXPECT_EQ(found.waiting, false);
  EXPECT_FALSE(found.wait_reason);
  EXPECT_FALSE(found.changes);
}

TEST_F(ExplainWorld, RejectsUnknownJobs) {
  own::ExplainJobRequest request;
  request.job_name = "absent";
  EXPECT_EQ(refusal<own::ExplainJob>(request),
            "ValidationException: Requested resource not found.");
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
