// Tests jobs that share queues and machines by weights and quotas, and preemption.
#include <cmath>

#include "control/testing/test_batch.hpp"

#include "batch/catalog.hpp"

namespace trainyard::control {
namespace {

using batch::QuotaShare;
using batch::ResourceChange;
using batch::SchedulingPolicy;
using domain::JobState;
using domain::Phase;
using test::BatchCluster;
using test::kRegion;

class SharedCluster : public BatchCluster {
 public:
  // Queue "fair": shares whose name begins with blue have a third of the weight of others, so they
  // get three times as much.
  void add_fair_queue() {
    SchedulingPolicy policy;
    policy.key = {kRegion, "weights"};
    policy.weights = {{"blue*", 1.0 / 3}};
    ASSERT_TRUE(change(ResourceChange::create, policy));
    auto queue = queue_of("fair", {"box"}, 1);
    queue.policy = "weights";
    ASSERT_TRUE(change(ResourceChange::create, queue));
  }
  static CreateJob shared_job(const std::string& id, const std::string& share,
                              int64_t priority = 0) {
    CreateJob job = batch_job(id, 1, "fair");
    job.spec.queue->share = share;
    job.spec.queue->priority = priority;
    return job;
  }

  // Queue "training": four instances, two for each of the shares red and blue, which lend and
  // borrow.
  void add_quota_queue() {
    batch::ServiceEnvironment environment;
    environment.key = {kRegion, "instances"};
    environment.limits = {{std::string(batch::kInstancesUnit), 4}};
    ASSERT_TRUE(change(ResourceChange::create, environment));
    SchedulingPolicy policy;
    policy.key = {kRegion, "quotas"};
    policy.kind = SchedulingPolicy::Kind::quota_shares;
    ASSERT_TRUE(change(ResourceChange::create, policy));
    auto queue = queue_of("training", {"instances"}, 1);
    queue.service = true;
    queue.policy = "quotas";
    ASSERT_TRUE(change(ResourceChange::create, queue));
    for (const char* name : {"red", "blue"}) {
      QuotaShare share;
      share.key = {kRegion, batch::quota_share_name("training", name)};
      share.limits = {{std::string(batch::kInstancesUnit), 2}};
      share.strategy = QuotaShare::Strategy::lend_and_borrow;
      ASSERT_TRUE(change(ResourceChange::create, share));
    }
  }
  static CreateJob service_job(const std::string& id, const std::string& share,
                               uint32_t hosts = 1) {
    CreateJob job = TestCluster::job(id, hosts);
    job.spec.queue.emplace();
    job.spec.display_name = id;
    job.spec.queue->name = "training";
    job.spec.queue->quota_share = share;
    return job;
  }
  // Ends the job's process after its stop order, and removes its hosts.
  void leave(const std::string& id) {
    const auto job = find(id);
    const domain::AttemptId attempt{job->number, job->attempt()->number};
    for (domain::HostIndex host = 0; host < job->spec.hosts(); ++host) {
      wire::StateFact fact;
      fact.state = test::HostState::finished;
      fact.exit_code = 143;
      fact.stopped = domain::StopCause::interrupted;
      ASSERT_TRUE(report(id, host, fact));
    }
    ASSERT_TRUE(launcher.remove(attempt));
    clock.advance(2s);
    run();
  }
  std::vector<std::string> running(const std::vector<std::string>& ids) {
    std::vector<std::string> found;
    for (const std::string& id : ids)
      if (find(id)->state == JobState::active) found.push_back(id);
    return found;
  }
};

TEST(Sharing, StartsJobsByWeight) {
  SharedCluster cluster;
  cluster.add_fair_queue();
  std::vector<std::string> all;
  for (int number = 0; number < 60; ++number)
    for (const char* share : {"red", "blue"}) {
      all.push_back(share + std::to_string(number));
      ASSERT_TRUE(cluster.create(SharedCluster::shared_job(all.back(), share)));
    }
  int red = 0, blue = 0;
  for (int ended = 0; ended < 60; ++ended) {
    const auto running = cluster.running(all);
    ASSERT_EQ(running.size(), 4u);
    // The job that has run for longest ends.
    const auto first = *std::ranges::min_element(running, {}, [&](const std::string& id) {
      return std::pair(cluster.find(id)->attempt()->started, cluster.find(id)->number);
    });
    ++(first.starts_with("red") ? red : blue);
    cluster.clock.advance(15s);
    cluster.exit(first, 0);
  }
  EXPECT_NEAR(double(blue) / (red + blue), 0.75, 0.05) << red << " red, " << blue << " blue";
}

TEST(Sharing, StartsHigherPrioritiesOfAShareFirst) {
  SharedCluster cluster;
  cluster.add_fair_queue();
  for (const char* id : {"a", "b", "c", "d"})
    ASSERT_TRUE(cluster.create(SharedCluster::shared_job(id, "red")));
  ASSERT_TRUE(cluster.create(SharedCluster::shared_job("early", "red", 1)));
  ASSERT_TRUE(cluster.create(SharedCluster::shared_job("urgent", "red", 5)));
  cluster.exit("a", 0);
  EXPECT_EQ(cluster.status("urgent"), "STARTING");
  EXPECT_EQ(cluster.status("early"), "RUNNABLE");
}

TEST(Sharing, KeepsUsageOverARestart) {
  SharedCluster cluster;
  cluster.add_fair_queue();
  ASSERT_TRUE(cluster.create(SharedCluster::shared_job("a", "red")));
  cluster.clock.advance(100s);
  EXPECT_TRUE(cluster.ledger->usages()->empty()) << "the usage of running jobs is not stored";
  cluster.exit("a", 0);
  const auto usages = *cluster.ledger->usages();
  ASSERT_EQ(usages.size(), 1u);
  const auto& [share, usage] = *usages.begin();
  EXPECT_EQ(share, (domain::ShareKey{{kRegion, "fair"}, "red"}));
  EXPECT_NEAR(usage.cpu_seconds, domain::used_since(1, usage.at - 100s, 600s, usage.at), 1e-6);
  test::Replay replay;
  ASSERT_TRUE(replay.run(*cluster.ledger));
  EXPECT_EQ(replay.usages, usages) << "the commands give the same usages";
  cluster.restart();
  // Red has had its part, so blue's job starts first, whichever was submitted first.
  for (const char* id : {"b", "c", "d", "e"}) ASSERT_TRUE(cluster.create(cluster.batch_job(id)));
  ASSERT_TRUE(cluster.create(SharedCluster::shared_job("red2", "red")));
  ASSERT_TRUE(cluster.create(SharedCluster::shared_job("blue1", "blue")));
  cluster.exit("b", 0);
  EXPECT_EQ(cluster.status("blue1"), "STARTING");
  EXPECT_EQ(cluster.status("red2"), "RUNNABLE");
  // A later queue of that name begins without usage.
  for (const char* id : {"red2", "blue1"})
    ASSERT_TRUE(cluster.cancel(id, domain::Cancellation::terminated, "by hand"));
  cluster.leave("blue1");
  auto queue = cluster.queue_of("fair", {"box"}, 1);
  queue.policy = "weights";
  queue.enabled = false;
  ASSERT_TRUE(cluster.change(ResourceChange::update, queue));
  ASSERT_TRUE(cluster.change(ResourceChange::remove, queue));
  EXPECT_TRUE(cluster.ledger->usages()->empty());
}

TEST(Sharing, GivesUsersEqualShares) {
  BatchCluster cluster;
  const auto of = [](const std::string& name, const std::string& who) {
    CreateJob job = test::TestCluster::job(name, 1, "ml.m5.2xlarge");
    job.spec.principal = who;
    return job;
  };
  ASSERT_TRUE(cluster.create(of("a1", "alice")));
  cluster.clock.advance(100s);
  ASSERT_TRUE(cluster.create(of("a2", "alice")));
  ASSERT_TRUE(cluster.create(of("b1", "bob")));
  for (int state = int(test::HostState::preparing); state <= int(test::HostState::finished);
       ++state)
    ASSERT_TRUE(cluster.report("a1", 0, test::HostState(state)));
  ASSERT_TRUE(cluster.launcher.remove({1, 1}));
  cluster.run();
  EXPECT_EQ(cluster.find("b1")->state, JobState::active) << "alice has had her part";
  EXPECT_EQ(cluster.find("a2")->state, JobState::waiting);
}

TEST(Sharing, ReclaimsBorrowedCapacity) {
  SharedCluster cluster;
  cluster.launcher.the_machines[0].cpus = 64;
  cluster.launcher.the_machines[0].memory_bytes = int64_t{256} << 30;
  cluster.add_quota_queue();
  for (const char* id : {"red1", "red2", "red3", "red4"})
    ASSERT_TRUE(cluster.create(SharedCluster::service_job(id, "red")));
  EXPECT_EQ(cluster.running({"red1", "red2", "red3", "red4"}).size(), 4u)
      << "blue lends what it does not use";
  for (const char* id : {"red1", "red2", "red3", "red4"})
    cluster.walk(id, 0, test::HostState::running);
  ASSERT_TRUE(cluster.create(SharedCluster::service_job("blue1", "blue")));
  std::vector<std::string> preempted;
  for (const char* id : {"red1", "red2", "red3", "red4"})
    if (cluster.find(id)->attempt()->interrupted) preempted.push_back(id);
  ASSERT_EQ(preempted.size(), 1u) << "one preempted job is enough";
  const std::string& preempted_job = preempted[0];
  EXPECT_TRUE(cluster.find(preempted_job)->attempt()->preempted);
  EXPECT_EQ(cluster.find(preempted_job)->phase(), Phase::interrupted);
  EXPECT_NE(cluster.phases(preempted_job).back().find("quota share blue"), std::string::npos)
      << cluster.phases(preempted_job).back();
  EXPECT_EQ(cluster.find("blue1")->state, JobState::waiting)
      << "it waits until the preempted job has ended";
  cluster.leave(preempted_job);
  EXPECT_EQ(cluster.find("blue1")->state, JobState::active);
  EXPECT_EQ(cluster.find(preempted_job)->state, JobState::waiting);
  cluster.walk("blue1", 0, test::HostState::finished);
  const auto blue = cluster.find("blue1");
  ASSERT_TRUE(cluster.launcher.remove({blue->number, 1}));
  cluster.clock.advance(2s);
  cluster.run();
  EXPECT_EQ(cluster.find(preempted_job)->state, JobState::active) << "it runs again";
  EXPECT_EQ(cluster.find(preempted_job)->attempt()->number, 2u);
  EXPECT_FALSE(cluster.find(preempted_job)->attempt()->preempted);
}

TEST(Sharing, PreemptsAJobAsOftenAsItAllows) {
  SharedCluster cluster;
  cluster.launcher.the_machines[0].cpus = 64;
  cluster.launcher.the_machines[0].memory_bytes = int64_t{256} << 30;
  cluster.add_quota_queue();
  CreateJob job = SharedCluster::service_job("red", "red", 4);
  job.spec.queue->preemptions_max = 0;
  ASSERT_TRUE(cluster.create(job));
  for (domain::HostIndex host = 0; host < 4; ++host)
    cluster.walk("red", host, test::HostState::running);
  ASSERT_TRUE(cluster.create(SharedCluster::service_job("blue", "blue")));
  cluster.leave("red");
  EXPECT_EQ(cluster.find("red")->state, JobState::failed);
  EXPECT_NE(
      cluster.find("red")->failure_reason.find(
          "ClientError: it was preempted 1 time, and its preemptionRetriesBeforeTermination is 0"),
      std::string::npos)
      << cluster.find("red")->failure_reason;
  EXPECT_EQ(cluster.find("blue")->state, JobState::active);
}

TEST(Sharing, ShowsThePendingReasonOfAJobBeyondItsQuota) {
  BatchCluster cluster;
  int64_t count = 1;
  cluster.settings.quotas = [&] {
    return std::vector<domain::InstanceQuota>{{"", "", "ml.m5.large", count}};
  };
  cluster.restart();
  ASSERT_TRUE(cluster.create(test::TestCluster::job("a")));
  ASSERT_TRUE(cluster.create(test::TestCluster::job("b")));
  ASSERT_TRUE(cluster.create(test::TestCluster::job("c", 2)));
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  EXPECT_NE(cluster.find("b")->wait_reason.find("ml.m5.large for training job usage"),
            std::string::npos)
      << cluster.find("b")->wait_reason;
  EXPECT_NE(cluster.find("c")->wait_reason.find("raise its [[quota]]"), std::string::npos)
      << cluster.find("c")->wait_reason;
  count = 2;
  cluster.run();
  EXPECT_EQ(cluster.find("b")->state, JobState::active)
      << "the quota was raised while the server runs";
  EXPECT_NE(cluster.find("c")->state, JobState::active);
}

}  // namespace
}  // namespace trainyard::control
