#include <gtest/gtest.h>

#include <limits>

#include "auth/authorizer.hpp"
#include "operations/testing/operation_caller.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

// `running-1` (bob) has held half of the machine for five minutes; `done-1` (ann) held all of it
// for the five minutes before.
struct ReplayWorld : OperationsWorld, ::testing::Test {
  ReplayWorld() : OperationsWorld(trainyard_api::add_replays) {
    context.principal.kind = PrincipalKind::owner;
    context.may_describe = [this](const Context& who, const domain::JobKey& job) {
      return Authorizer(settings, services).may_describe(who, job);
    };
    context.principal.arn = "arn:aws:iam::123456789012:root";
    context.now = clock.now();
    control.machines = {{"box-1", 8, int64_t{64} << 30, 0}};
    domain::Job done = job(1, "done-1", "ann", 2, 10min);
    done.state = domain::JobState::completed;
    done.attempts[0].state = domain::AttemptState::ended;
    done.attempts[0].ended = clock.now() - 5min;
    control.page.jobs = {done};
    domain::Job running = job(2, "running-1", "bob", 1, 9min);
    running.attempts[0].started = clock.now() - 5min;
    control.jobs[running.key] = std::make_shared<const domain::Job>(running);
  }
  domain::Job job(uint64_t number, const std::string& name, const std::string& who, uint32_t hosts,
                  Duration ago) {
    domain::Job out;
    out.number = number;
    out.key = {"eu-west-1", name};
    out.account = "123456789012";
    out.spec.principal = who;
    out.spec.groups = {{"homogeneousCluster", "ml.m5.xlarge", hosts}};
    out.created = clock.now() - ago;
    out.state = domain::JobState::active;
    domain::Host host;
    host.machine = "box-1";
    host.share = {4, int64_t{16} << 30, 0};
    out.attempts = {{.number = 1,
                     .state = domain::AttemptState::running,
                     .hosts = std::vector<domain::Host>(hosts, host),
                     .started = out.created}};
    return out;
  }
  static own::ReplayChange change(const std::string& kind) {
    own::ReplayChange out;
    out.kind = kind;
    return out;
  }
  static own::ReplayJobsRequest with(own::ReplayChange change) {
    own::ReplayVariant variant;
    variant.name = "changed";
    variant.changes.emplace().push_back(std::move(change));
    own::ReplayJobsRequest request;
    request.variants.emplace().push_back(std::move(variant));
    return request;
  }
};

TEST_F(ReplayWorld, ShowsTheOutcomesSideBySide) {
  own::ReplayChange more = change("AddMachines");
  more.instance_type = "ml.m5.2xlarge";
  auto found = call<own::ReplayJobs>(with(more));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->completed, true);
  EXPECT_EQ(found->jobs, 2);
  EXPECT_EQ(found->running_jobs, 1);
  ASSERT_EQ(found->outcomes->size(), 3u);
  EXPECT_EQ((*found->outcomes)[0].name, "recorded");
  EXPECT_EQ((*found->outcomes)[0].waits->longest_milliseconds, 4 * 60'000);
  EXPECT_EQ((*found->outcomes)[1].waits->longest_milliseconds, 4 * 60'000);
  EXPECT_EQ((*found->outcomes)[2].waits->longest_milliseconds, 0);
  EXPECT_EQ((*found->outcomes)[2].cpus, 16);
  ASSERT_EQ(found->most_affected->size(), 1u);
  EXPECT_EQ((*found->most_affected)[0].job_name, "running-1");
  EXPECT_EQ(control.queries.back().region, "eu-west-1");
}

TEST_F(ReplayWorld, HidesJobsThatTheCallerMayNotDescribe) {
  own::ReplayChange more = change("AddMachines");
  more.cpus = 8;
  more.memory_in_bytes = int64_t{64} << 30;
  context.principal = {.account = "123456789012",
                       .arn = "arn:aws:iam::123456789012:user/ann",
                       .name = "ann",
                       .kind = PrincipalKind::user};
  auto found = call<own::ReplayJobs>(with(more));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->jobs, 2);
  EXPECT_TRUE(found->most_affected->empty());
}

TEST_F(ReplayWorld, RejectsInvalidChanges) {
  const auto text_of = [&](own::ReplayChange one) { return refusal<own::ReplayJobs>(with(one)); };
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), -1.0, 0.0, 1e308}) {
    own::ReplayChange rate = change("SetSubmitRate");
    rate.value = value;
    EXPECT_NE(text_of(rate).find("invalid submit rate"), std::string::npos) << value;
  }
  EXPECT_NE(text_of(change("SetSubmitRate")).find("needs a Value"), std::string::npos);
  EXPECT_NE(text_of(change("RemoveMachine")).find("needs a Name"), std::string::npos);
  own::ReplayChange type = change("AddMachines");
  type.instance_type = "ml.unknown";
  EXPECT_NE(text_of(type).find("unknown instance type 'ml.unknown'"), std::string::npos);
  own::ReplayChange negative = change("AddMachines");
  negative.cpus = 1;
  negative.gpus = std::numeric_limits<int64_t>::min();
  EXPECT_NE(text_of(negative).find("invalid GPUs"), std::string::npos);
  own::ReplayJobsRequest dropped;
  dropped.replay_id = "0123456789abcdef";
  EXPECT_NE(refusal<own::ReplayJobs>(dropped).find("start it again"), std::string::npos);
  own::ReplayJobsRequest future;
  future.period_start = clock.now() + 1h;
  EXPECT_NE(refusal<own::ReplayJobs>(future).find("invalid period"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
