// Runs the test suite of `objects` through the S3 client, a socket, signatures and the S3 API, on
// objects in memory.
#include "dispatch/api.hpp"
#include "dispatch/testing/in_memory.hpp"
#include "net/http_server.hpp"
#include "objects/memory.hpp"
#include "objects/s3_client.hpp"
#include "objects/testing/suite.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::objects {
namespace {

struct World {
  World(Clock& clock, Random& seeded) : objects(make_memory(clock, seeded)), control(clock) {
    logs = *observe::open_logs(directory.path() + "/logs", clock);
    metrics = *observe::open_metrics(directory.path() + "/metrics");
    const api::Settings settings{.account = "123456789012",
                                 .keys = {{"AKIAOWNER", "owner-secret"}},
                                 .temporary_key_secret = std::string(32, 's')};
    service = api::make_api(settings, {control, *logs, *metrics, *objects, clock, random});
    server = std::move(*net::serve_http({.listen = "127.0.0.1:0"}, *service));
  }
  ~World() { server->stop(0ms); }

  os::TemporaryDirectory directory;
  os::MachineRandom random;  // used by many threads
  std::unique_ptr<Objects> objects;
  api::in_memory::PlainControl control;
  std::unique_ptr<observe::Logs> logs;
  std::unique_ptr<observe::Metrics> metrics;
  std::unique_ptr<net::Handler> service;
  std::unique_ptr<net::HttpServer> server;
};

Subject make_client(Clock& clock, Random& random) {
  auto world = std::make_shared<World>(clock, random);
  S3Settings settings;
  settings.endpoint = "http://127.0.0.1:" + std::to_string(world->server->port());
  settings.region = "eu-west-1";
  settings.keys = [] { return signing::Keys{"AKIAOWNER", "owner-secret", ""}; };
  auto client = open_s3(settings, clock);
  EXPECT_TRUE(client) << client.error().message;
  return {world, std::move(*client)};
}

INSTANTIATE_TEST_SUITE_P(, ObjectsSuite, testing::Values(Maker{"s3_client", make_client}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace trainyard::objects
