#include "gateway/orders.hpp"

#include <gtest/gtest.h>

namespace trainyard::gateway {
namespace {

using domain::HostState;
using domain::StopCause;

constexpr Duration kUsualGrace = 120s;

// A job with an attempt on three running hosts.
struct OrderedJob {
  OrderedJob() {
    job.spec.groups = {{"default", "1 vCPU, 64 MiB", 3}};
    attempt.hosts.resize(3);
    for (domain::Host& host : attempt.hosts) host.state = HostState::running;
  }
  wire::Stop stop(domain::HostIndex host = 0) const {
    return stop_order_of(job, attempt, host, kUsualGrace);
  }
  domain::Job job;
  domain::Attempt attempt;
};

TEST(Orders, LetAHostOfARunningJobContinue) {
  EXPECT_EQ(OrderedJob().stop().cause, StopCause::none);
  EXPECT_FALSE(main_runs_for(OrderedJob().job, OrderedJob().attempt, 0))
      << "the job has no main host";
}

TEST(Orders, StopForTheFirstCause) {
  OrderedJob world;
  world.job.stop_cause = StopCause::user;
  EXPECT_EQ(world.stop().cause, StopCause::user);
  world.attempt.first_failed = 1;
  EXPECT_EQ(world.stop().cause, StopCause::host_failed);
  world.attempt.interruption = "the machine is needed";
  EXPECT_EQ(world.stop().cause, StopCause::interrupted);
}

TEST(Orders, StopWithTheShortestGrace) {
  OrderedJob world;
  world.job.stop_cause = StopCause::user;
  world.job.stop_grace = 10s;
  EXPECT_EQ(world.stop().grace, Duration(10s));
  world.job.stop_grace.reset();
  world.attempt.interrupted = from_milliseconds(1);
  world.attempt.notice = 30s;
  EXPECT_EQ(world.stop().grace, Duration(30s));
  world.job.stop_grace = 40s;
  EXPECT_EQ(world.stop().grace, Duration(30s));
}

TEST(Orders, LetTheFirstHostUploadWhenAllOthersHaveDrained) {
  OrderedJob world;
  auto& hosts = world.attempt.hosts;
  hosts[1].state = HostState::uploading;
  hosts[1].staged_model = "one";
  EXPECT_FALSE(peers_order_of(world.attempt, 0));
  hosts[2].state = HostState::lost;
  const auto order = peers_order_of(world.attempt, 0);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->staged_models, (std::vector<std::string>{"one", ""}));
  EXPECT_FALSE(peers_order_of(world.attempt, 1));
  hosts.resize(1);
  EXPECT_FALSE(peers_order_of(world.attempt, 0)) << "the attempt has no other hosts";
}

}  // namespace
}  // namespace trainyard::gateway
