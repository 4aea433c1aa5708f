// Tests that the data of one job never ends the server: neither a job that cannot be planned nor a
// record of an earlier version.
#include <gtest/gtest.h>

#include "batch/catalog.hpp"
#include "control/commit_batch.hpp"
#include "control/testing/test_cluster.hpp"
#include "reconcile/job_fault.hpp"
#include "reconcile/reconcile.hpp"
#include "schedule/plan.hpp"

namespace trainyard::control {
namespace {

using domain::HostState;
using domain::JobState;
using domain::Phase;
using test::TestCluster;

// Returns a job that an earlier version committed: CreateTrainingJob accepted any counts, and their
// sum was 0 in 32 bits.
domain::Job a_job_of_an_earlier_version(domain::JobNumber number) {
  domain::Job job;
  job.number = number;
  job.key = {"us-east-1", "poison"};
  job.account = "123456789012";
  job.spec.image = "machine";
  job.spec.groups = {
      {"a", "ml.m5.large", 2147483647}, {"b", "ml.m5.large", 2147483647}, {"c", "ml.m5.large", 2}};
  job.created = job.modified = from_milliseconds(1'763'631'900'000);
  job.transitions = {{Phase::starting, "Starting the training job.", job.created, {}}};
  return job;
}

TEST(JobBoundary, StartsWithALedgerThatHasAnImpossibleJob) {
  for (const bool scale : {false, true}) {
    TestCluster cluster;
    cluster.settings.scale_gangs = scale;
    ASSERT_TRUE(cluster.create(TestCluster::job("before", 1)));
    ledger::Batch batch;
    batch.jobs = {a_job_of_an_earlier_version(cluster.ledger->last_job_number() + 1)};
    ASSERT_TRUE(cluster.ledger->commit(batch));
    cluster.restart();
    cluster.run();
    EXPECT_EQ(cluster.find("poison")->state, JobState::failed);
    EXPECT_EQ(cluster.find("poison")->failure_reason,
              "InternalServerError: instance group a: the number of hosts is 2147483647, and must "
              "be between 1 and 10000");
    EXPECT_EQ(cluster.phases("poison").back().substr(0, 28), "Failed: InternalServerError:");
    ASSERT_TRUE(cluster.create(TestCluster::job("after", 1)));
    EXPECT_EQ(cluster.find("after")->state, JobState::active) << "other jobs continue";
    EXPECT_EQ(cluster.find("before")->state, JobState::active);
    cluster.restart();
    cluster.run();
    EXPECT_EQ(cluster.find("poison")->state, JobState::failed);
    EXPECT_EQ(cluster.find("after")->state, JobState::active);
  }
}

TEST(JobBoundary, RejectsImpossibleNumbers) {
  TestCluster cluster;
  CreateJob job = TestCluster::job("a", 2147483647);
  job.spec.groups.push_back(job.spec.groups.front());
  job.spec.groups.push_back({"c", "ml.m5.large", 2});
  const auto made = cluster.create(job);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, Kind::invalid);
  EXPECT_EQ(cluster.ledger->last_job_number(), 0u);
}

std::string too_large(int hosts, int most) {
  return "the job requests " + std::to_string(hosts) +
         " hosts, and the network pool of this server holds gangs of at most " +
         std::to_string(most) +
         ": request fewer instances, or set a larger network.pool in its config";
}

TEST(JobBoundary, RejectsGangsBeyondTheNetworkPool) {
  TestCluster cluster;
  cluster.settings.gang_hosts_max = 13;
  cluster.settings.encrypted_gang_hosts_max = 5;
  cluster.restart();
  EXPECT_EQ(cluster.create(TestCluster::job("a", 14)).error().message, too_large(14, 13));
  CreateJob encrypted = TestCluster::job("b", 6);
  encrypted.spec.encrypt_traffic = true;
  EXPECT_EQ(cluster.create(encrypted).error().message, too_large(6, 5));
  EXPECT_TRUE(cluster.create(TestCluster::job("c", 13)));
}

TEST(JobBoundary, RejectsJobsWithAnImpossibleInstancePreference) {
  TestCluster cluster;
  cluster.settings.gang_hosts_max = 13;
  cluster.settings.no_encryption = "no WireGuard";
  cluster.restart();
  CreateJob job = TestCluster::job("a", 1);
  job.spec.preferences = {job.spec.groups[0], {"homogeneousCluster", "ml.m5.xlarge", 14}};
  EXPECT_EQ(cluster.create(job).error().message, too_large(14, 13));
  job.spec.preferences[1].count = 2;
  job.spec.encrypt_traffic = true;
  EXPECT_EQ(cluster.create(job).error().message,
            "EnableInterContainerTrafficEncryption is not available here: no WireGuard");
  job.spec.encrypt_traffic = false;
  EXPECT_TRUE(cluster.create(job));
}

// A snapshot of two waiting jobs.
reconcile::Snapshot two_waiting() {
  reconcile::Snapshot snapshot;
  snapshot.machines = {{"box-1", 8, int64_t{32} << 30, 0}};
  for (const domain::JobNumber number : {1u, 2u}) {
    auto job = std::make_shared<domain::Job>();
    job->number = number;
    job->key = {"us-east-1", "job-" + std::to_string(number)};
    job->spec.groups = {{"homogeneousCluster", "ml.m5.large", 1}};
    snapshot.jobs.push_back(std::move(job));
  }
  return snapshot;
}

TEST(JobBoundary, FailsOnlyTheJobForWhichThePlannerThrows) {
  const auto planner = [](const schedule::Snapshot& snapshot, const schedule::Policy& policy,
                          Instant now) {
    for (const auto& waiting : snapshot.waiting)
      if (waiting.job == 1) throw std::bad_alloc();
    return schedule::plan(snapshot, policy, now);
  };
  const reconcile::Decision decision =
      reconcile::decide(two_waiting(), {}, {}, {}, from_milliseconds(1), planner);
  ASSERT_EQ(decision.commands.size(), 2u);
  const auto& failed = std::get<reconcile::Fail>(decision.commands[0]);
  EXPECT_EQ(failed.job, 1u);
  EXPECT_EQ(failed.reason, "the job cannot be planned: std::bad_alloc");
  EXPECT_EQ(std::get<reconcile::StartAttempt>(decision.commands[1]).job, 2u);
}

TEST(JobBoundary, StartsNoJobIfThePlannerThrowsOnlyForSeveralTogether) {
  const auto planner = [](const schedule::Snapshot& snapshot, const schedule::Policy& policy,
                          Instant now) {
    if (snapshot.waiting.size() > 1) throw reconcile::JobFault("two are too many");
    return schedule::plan(snapshot, policy, now);
  };
  const reconcile::Decision decision =
      reconcile::decide(two_waiting(), {}, {}, {}, from_milliseconds(1), planner);
  EXPECT_TRUE(decision.commands.empty());
  ASSERT_EQ(decision.waits.size(), 2u);
  EXPECT_EQ(decision.waits[0].reason.str(),
            "InternalServerError: planning failed: two are too many");
}

TEST(JobBoundary, FailsAJobWhoseRecordMakesACommandImpossible) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 1)));
  // The record is inconsistent: the job waits while its attempt runs, so the attempt's end has no
  // next state.
  domain::Job broken = *cluster.find("a");
  broken.state = JobState::waiting;
  broken.stop_cause = domain::StopCause::user;
  Live live;
  live.put({std::make_shared<const domain::Job>(broken)});
  wire::StateFact fact;
  fact.number = 1;
  fact.state = HostState::failed;
  fact.fault = domain::Fault::algorithm;
  const UsageIndex usages;
  CommitBatch batch(*cluster.ledger, live, usages, std::make_shared<batch::Catalog>(),
                    std::make_shared<const domain::Records>(), cluster.clock.now(), {});
  PendingCommand pending{reconcile::Fact{{broken.number, 1}, 0, fact}, {}, {}, {}};
  const auto after = batch.add(pending);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ((*after)->state, JobState::failed);
  EXPECT_EQ((*after)->failure_reason,
            "InternalServerError: the command fact cannot be applied to the job: the job's record "
            "does not allow its next state");
  ASSERT_TRUE(batch.commit()) << "the stored record can be replayed";
  EXPECT_EQ(cluster.ledger->find_job(broken.number)->state, JobState::failed);
}

TEST(JobBoundary, RemovesTheAttemptOfAFailedJob) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 2)));
  const auto running = cluster.find("a");
  const auto change =
      reconcile::apply({running.get()}, reconcile::Fail{running->number, "its record cannot be"},
                       cluster.clock.now());
  ASSERT_TRUE(change);
  EXPECT_EQ(change->job->state, JobState::failed);
  EXPECT_EQ(change->job->attempts.back().state, domain::AttemptState::ended);
  EXPECT_EQ(change->job->attempts.back().hosts[1].state, HostState::lost);
  const auto again = reconcile::apply({&*change->job}, reconcile::Fail{running->number, "again"},
                                      cluster.clock.now());
  EXPECT_TRUE(again->nothing());
}

TEST(JobBoundary, ShowsInWaitingJobsThatReconcilingFails) {
  TestCluster cluster;
  bool fails = true;
  cluster.settings.quotas = [&fails]() -> std::vector<domain::InstanceQuota> {
    if (fails) throw std::runtime_error("no quotas");
    return {};
  };
  cluster.restart();
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 1)));
  EXPECT_EQ(cluster.find("a")->wait_reason, "InternalServerError: planning failed: no quotas");
  fails = false;
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  EXPECT_EQ(cluster.find("a")->wait_reason, "");
}

}  // namespace
}  // namespace trainyard::control
