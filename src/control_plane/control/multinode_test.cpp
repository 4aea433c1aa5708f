// Tests multi-node parallel jobs, whose main host determines the state of the job.
#include "batch/status.hpp"
#include "control/gang.hpp"
#include "control/testing/test_batch.hpp"
#include "domain/stage.hpp"
#include "wire/codec.hpp"

namespace trainyard::control {
namespace {

using domain::Fault;
using domain::HostIndex;
using domain::HostState;
using domain::StopCause;
using test::BatchCluster;

constexpr HostIndex kMain = 1;

// A job of three hosts, of which the second is the main one.
class Nodes : public BatchCluster {
 public:
  explicit Nodes(uint32_t attempts_max = 1) {
    settings.stop_grace = 1s;
    settings.volumes["/fsx"] = {"/srv/fsx", "", "", false};
    settings.images["other"] = {};
    restart();
    CreateJob nodes = job("n");
    nodes.spec.queue.emplace();
    nodes.spec.contract = domain::Contract::plain;
    nodes.spec.queue->name = "q";
    nodes.spec.definition = "arn:aws:batch:us-east-1:123456789012:job-definition/nodes:1";
    nodes.spec.main_node = kMain;
    nodes.spec.retry.attempts_max = attempts_max;
    nodes.spec.max_runtime_seconds = 60;
    const domain::Share share{0.5, 64 << 20, 0};
    nodes.spec.groups = {{"0:1", "vCPU", 2, share}, {"2:2", "vCPU", 1, share}};
    nodes.spec.groups[0].program = domain::Program{"machine", {"first"}, {{"A", "1"}}};
    nodes.spec.groups[1].program = domain::Program{"other", {"last"}, {}};
    nodes.spec.groups[1].container_options.volumes = {
        {domain::VolumeKind::shared, "/fsx", "", "/fsx", false, 0}};
    EXPECT_TRUE(create(nodes));
  }

  void end(HostIndex host, int code, StopCause stopped = StopCause::none) {
    wire::StateFact fact;
    fact.state = HostState::draining;
    fact.exit_code = code;
    fact.stopped = stopped;
    if (code != 0 && stopped == StopCause::none) fact.fault = Fault::algorithm;
    ASSERT_TRUE(report("n", host, fact));
    ASSERT_TRUE(report("n", host, HostState::uploading));
    fact = {};
    fact.state = code == 0 || stopped != StopCause::none ? HostState::finished : HostState::failed;
    fact.fault =
        code == 0 || stopped != StopCause::none ? std::nullopt : std::optional(Fault::algorithm);
    fact.stopped = stopped;
    ASSERT_TRUE(report("n", host, fact));
  }
  void all_run() {
    walk("n", kMain, HostState::running);
    for (const HostIndex host : {0u, 2u}) walk("n", host, HostState::running);
  }
  // Ends the other hosts of the gang, as after the end of the main host.
  void followers_end(std::initializer_list<HostIndex> hosts) {
    for (const HostIndex host : hosts) end(host, 143, StopCause::main_ended);
    const auto job = find("n");
    for (const auto& attempt : job->attempts)
      ASSERT_TRUE(launcher.remove({job->number, attempt.number}));
    clock.advance(2s);
    run();
  }
  std::string status() { return std::string(batch::status_name(domain::stage_of(*find("n")))); }
  std::string status(HostIndex host) {
    return std::string(batch::status_name(batch::node_status(*find("n"), host)));
  }
  wire::Order order(HostIndex host) {
    return *wire::decode_order(launcher.gangs.at({1, 1}).members.at(host).order);
  }
};

TEST(Multinode, SetsTheProgramAndTheHostInEachOrder) {
  Nodes cluster;
  EXPECT_EQ(cluster.order(0).spec.arguments, std::vector<std::string>{"first"});
  EXPECT_EQ(cluster.order(0).spec.environment.at("A"), "1");
  EXPECT_EQ(cluster.order(2).spec.image, "other");
  EXPECT_EQ(cluster.order(2).spec.arguments, std::vector<std::string>{"last"});
  EXPECT_TRUE(cluster.order(2).spec.environment.empty());
  EXPECT_TRUE(cluster.order(0).file_systems.empty());
  EXPECT_EQ(cluster.order(2).file_systems.at("/fsx"), "/srv/fsx");
  EXPECT_EQ(cluster.order(2).spec.group(2).container_options.volumes.size(), 1u);
  EXPECT_TRUE(cluster.order(0).spec.group(2).container_options.volumes.empty())
      << "it has no data of other groups";
  const auto variables = cluster.order(2).variables;
  EXPECT_EQ(variables.at("AWS_BATCH_JOB_NODE_INDEX"), "2");
  EXPECT_EQ(variables.at("AWS_BATCH_JOB_NUM_NODES"), "3");
  EXPECT_EQ(variables.at("AWS_BATCH_JOB_MAIN_NODE_INDEX"), "1");
  EXPECT_EQ(cluster.order(2).spec.main_host(), kMain);
}

TEST(Multinode, RunsAndEndsWithItsMainHost) {
  Nodes cluster;
  cluster.walk("n", kMain, HostState::downloading);
  cluster.walk("n", 0, HostState::downloading);
  EXPECT_EQ(cluster.status(), "STARTING");
  ASSERT_TRUE(cluster.report("n", kMain, HostState::running));
  EXPECT_EQ(cluster.status(), "RUNNING");
  EXPECT_EQ(cluster.status(0), "STARTING");
  EXPECT_EQ(batch::node_status_reason(*cluster.find("n"), 0),
            "starts when the main node of the job runs");
  ASSERT_TRUE(cluster.report("n", 0, HostState::running));
  cluster.walk("n", 2, HostState::running);
  cluster.end(kMain, 0);
  EXPECT_EQ(cluster.status(), "RUNNING") << "the others are being stopped";
  cluster.clock.advance(61s);
  cluster.run();
  EXPECT_EQ(cluster.find("n")->stop_cause, StopCause::none) << "the main host ended in time";
  cluster.followers_end({0, 2});
  EXPECT_EQ(cluster.status(), "SUCCEEDED");
  EXPECT_EQ(cluster.find("n")->attempt()->exit_code, 0);
  for (HostIndex host = 0; host < 3; ++host) EXPECT_EQ(cluster.status(host), "SUCCEEDED");
  EXPECT_EQ(batch::node_status_reason(*cluster.find("n"), 0), "Main node of the job has ended");
}

TEST(Multinode, IgnoresTheResultsOfOtherHosts) {
  Nodes cluster(3);
  cluster.all_run();
  cluster.end(0, 3);
  EXPECT_EQ(cluster.status(0), "FAILED");
  cluster.launcher.kill({1, 1}, 2);
  cluster.run();
  EXPECT_EQ(cluster.status(2), "FAILED");
  EXPECT_TRUE(
      domain::matches("Host EC2 (instance i-*", batch::node_status_reason(*cluster.find("n"), 2)));
  EXPECT_EQ(cluster.status(), "RUNNING");
  EXPECT_FALSE(cluster.find("n")->attempt()->first_failed);
  cluster.end(kMain, 0);
  EXPECT_EQ(cluster.status(), "SUCCEEDED");
  EXPECT_EQ(cluster.find("n")->attempts.size(), 1u);
}

TEST(Multinode, FailsWithItsMainHost) {
  Nodes cluster(2);
  cluster.all_run();
  cluster.end(kMain, 5);
  EXPECT_EQ(cluster.find("n")->attempt()->first_failed, kMain);
  cluster.followers_end({0, 2});
  ASSERT_EQ(cluster.find("n")->attempts.size(), 2u);
  EXPECT_EQ(cluster.find("n")->attempts[0].exit_code, 5);
  cluster.all_run();
  cluster.launcher.kill({1, 2}, kMain);
  cluster.run();
  cluster.followers_end({0, 2});
  EXPECT_EQ(cluster.status(), "FAILED");
  EXPECT_TRUE(domain::matches("Host EC2 (instance i-*", batch::status_reason(*cluster.find("n"))));
}

TEST(Multinode, AppliesTheTimeoutToTheMainHost) {
  Nodes cluster;
  cluster.all_run();
  cluster.clock.advance(30s);
  wire::StateFact late;
  late.state = HostState::draining;
  late.exit_code = 143;
  late.stopped = StopCause::max_runtime;
  ASSERT_TRUE(cluster.report("n", 0, late));
  EXPECT_EQ(cluster.find("n")->stop_cause, StopCause::none)
      << "other hosts cannot end the job by a timeout";
  cluster.clock.advance(31s);
  cluster.run();
  EXPECT_EQ(cluster.find("n")->stop_cause, StopCause::max_runtime);
}

TEST(Multinode, LosesHostsThatDoNotEndAfterTheMainHost) {
  Nodes cluster;
  cluster.all_run();
  cluster.end(kMain, 0);
  cluster.end(0, 143, StopCause::main_ended);
  cluster.clock.advance(cluster.settings.stop_grace + cluster.settings.stop_upload_timeout + 1s);
  cluster.run();
  EXPECT_EQ(cluster.status(), "SUCCEEDED");
  EXPECT_EQ(cluster.status(2), "FAILED");
}

TEST(Multinode, NamesAVolumeThatTheConfigNoLongerHas) {
  Nodes cluster;
  const auto job = cluster.find("n");
  cluster.settings.volumes.clear();
  ImageResolver images(cluster.settings.images);
  const auto gang = gang_of(cluster.settings, images, *job, {job->number, 1}, cluster.clock.now());
  ASSERT_FALSE(gang);
  EXPECT_NE(gang.error().message.find(
                "/fsx, which is mounted at /fsx, is no longer in the config's [volumes]"),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard::control
