#include <gtest/gtest.h>

#include "auth/authorizer.hpp"
#include "operations/testing/operation_caller.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

struct MachineWorld : OperationsWorld, ::testing::Test {
  std::vector<ServerMachine> machines{{"box-2", 8, 16, 1, "room-1"}, {"box-1", 4, 8, 0, ""}};

  MachineWorld() : OperationsWorld(trainyard_api::add_machines) {
    context.principal.kind = PrincipalKind::owner;
    context.may_describe = [this](const Context& who, const domain::JobKey& job) {
      return Authorizer(settings, services).may_describe(who, job);
    };
    services.machines = [this] { return machines; };
  }
  domain::Job job(const std::string& name, const std::vector<std::string>& on) {
    domain::Job out;
    out.number = control.jobs.size() + 1;
    out.key = {"eu-west-1", name};
    out.account = "123456789012";
    out.state = domain::JobState::active;
    out.spec.groups.push_back({"homogeneousCluster", "ml.m5.large", uint32_t(on.size())});
    out.attempts.push_back({.number = 1, .state = domain::AttemptState::running});
    for (const std::string& machine : on) {
      domain::Host host;
      host.machine = machine;
      host.share = {2, 4, machine == "box-2" ? 1 : 0};
      out.attempts.back().hosts.push_back(host);
    }
    return out;
  }
  void keep(const domain::Job& job) {
    control.jobs[job.key] = std::make_shared<const domain::Job>(job);
  }
  std::vector<own::Machine> list(const own::ListMachinesRequest& request = {}) {
    auto out = call<own::ListMachines>(request);
    EXPECT_TRUE(out);
    return *out->machines;
  }
};

TEST_F(MachineWorld, ListsMachinesByNameWithTheirHosts) {
  keep(job("mnist-1", {"box-1", "box-2", "box-2"}));
  const auto found = list();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "box-1");
  EXPECT_EQ(found[0].cpus, 4);
  EXPECT_EQ(found[0].cpus_used, 2);
  EXPECT_FALSE(found[0].topology);
  EXPECT_EQ(found[1].topology, "room-1");
  EXPECT_EQ(found[1].cpus_used, 4);
  EXPECT_EQ(found[1].memory_used_in_bytes, 8);
  EXPECT_EQ(found[1].gpus, 1);
  EXPECT_EQ(found[1].gpus_used, 2);
  ASSERT_EQ(found[1].hosts->size(), 2u);
  EXPECT_EQ(found[1].hosts->at(0).job_name, "mnist-1");
  EXPECT_EQ(found[1].hosts->at(0).job_region, "eu-west-1");
  EXPECT_EQ(found[1].hosts->at(0).host, "algo-2");
  EXPECT_EQ(found[1].hosts->at(0).instance_type, "ml.m5.large");
}

TEST_F(MachineWorld, HidesTheNamesOfJobsThatTheCallerMayNotDescribe) {
  keep(job("secret-1", {"box-1"}));
  context.principal = {.account = "123456789012",
                       .arn = "arn:aws:iam::123456789012:user/ann",
                       .name = "ann",
                       .kind = PrincipalKind::user};
  const auto found = list();
  EXPECT_EQ(found[0].cpus_used, 2) << "what is free is no secret";
  const own::MachineHost& host = found[0].hosts->at(0);
  EXPECT_EQ(host.cpus, 2);
  EXPECT_FALSE(host.job_name);
  EXPECT_FALSE(host.job_region);
  EXPECT_FALSE(host.host);
  EXPECT_FALSE(host.instance_type);
}

TEST_F(MachineWorld, ShowsMissingMachinesWhileJobsHaveHostsThere) {
  keep(job("mnist-1", {"old-box"}));
  const auto found = list();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[2].name, "old-box");
  EXPECT_FALSE(found[2].cpus);
  EXPECT_EQ(found[2].cpus_used, 2);
}

TEST_F(MachineWorld, CountsEndedAttemptsOnlyWhileTheirHostsAreKept) {
  domain::Job over = job("over-1", {"box-1"});
  over.attempts.back().state = domain::AttemptState::ended;
  keep(over);
  EXPECT_EQ(list()[0].cpus_used, 0);
  over.warm_pool = domain::WarmPool{.state = domain::WarmPoolState::available};
  keep(over);
  EXPECT_EQ(list()[0].cpus_used, 2);
}

TEST_F(MachineWorld, ReturnsPages) {
  own::ListMachinesRequest request;
  request.max_results = 1;
  auto first = call<own::ListMachines>(request);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->machines->at(0).name, "box-1");
  request.next_token = first->next_token;
  auto second = call<own::ListMachines>(request);
  ASSERT_TRUE(second);
  ASSERT_EQ(second->machines->size(), 1u);
  EXPECT_EQ(second->machines->at(0).name, "box-2");
  EXPECT_FALSE(second->next_token);
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
