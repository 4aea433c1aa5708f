#include <gtest/gtest.h>

#include "operations/testing/operation_caller.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

struct World : OperationsWorld {
  ServerStatus status;
  World() {
    settings.account = "123456789012";
    services.server_status = [this] { return status; };
    add_server(table, settings, services);
  }
  void add_job(const std::string& name, domain::JobState state) {
    domain::Job job;
    job.key = {"eu-west-1", name};
    job.state = state;
    control.jobs[job.key] = std::make_shared<const domain::Job>(job);
  }
};

TEST(DescribeServer, ReportsTheServersStatus) {
  World world;
  world.status.endpoint = "http://127.0.0.1:4566";
  world.status.disk_free_bytes = 7;
  world.status.ledger_bytes = 5;
  world.status.agents = 3;
  world.status.certificate_names = {"yard.lan"};
  world.status.certificate_ends = world.clock.now() + 24h;
  world.status.errors = {{world.clock.now(), "control: placing failed"}};
  world.status.warnings = {"quota[0].who: user or role 'bob' not found"};
  auto out = world.call<own::DescribeServer>({});
  ASSERT_TRUE(out);
  EXPECT_EQ(out->account, "123456789012");
  EXPECT_EQ(out->endpoint, "http://127.0.0.1:4566");
  EXPECT_EQ(out->disk_free_bytes, 7);
  EXPECT_EQ(out->ledger_bytes, 5);
  EXPECT_EQ(out->agents, 3);
  EXPECT_EQ(out->certificate_names, std::vector<std::string>{"yard.lan"});
  EXPECT_EQ(out->certificate_end_time, world.status.certificate_ends);
  ASSERT_EQ(out->errors->size(), 1u);
  EXPECT_EQ(out->errors->at(0).message, "control: placing failed");
  EXPECT_EQ(out->warnings->size(), 1u);
  EXPECT_FALSE(out->config_file) << "the server has none";
  EXPECT_FALSE(out->log_file);
}

TEST(DescribeServer, CountsJobsByState) {
  World world;
  world.add_job("one", domain::JobState::waiting);
  world.add_job("two", domain::JobState::active);
  world.add_job("three", domain::JobState::active);
  world.add_job("over", domain::JobState::completed);
  auto out = world.call<own::DescribeServer>({});
  ASSERT_TRUE(out);
  std::map<std::string, int64_t> counts;
  for (const auto& each : *out->jobs) counts[*each.state] = *each.count;
  EXPECT_EQ(counts, (std::map<std::string, int64_t>{{"active", 2}, {"waiting", 1}}));
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
