// Tests jobs that are interrupted or retried, reach time limits, or leave warm pools.
#include <gtest/gtest.h>

#include "control/testing/test_cluster.hpp"
#include "wire/codec.hpp"

namespace trainyard::control {
namespace {

using domain::AttemptId;
using domain::HostState;
using domain::JobState;
using domain::Phase;
using domain::StopCause;
using domain::WarmPoolState;
using test::TestCluster;
using Lines = std::vector<std::string>;

CreateJob spot(const std::string& name, uint32_t hosts = 1) {
  CreateJob job = TestCluster::job(name, hosts);
  job.spec.spot = true;
  job.spec.max_wait_seconds = 3600;
  return job;
}

// Lets the agent obey its order: its process ends, the host finishes and is removed.
void obey(TestCluster& cluster, const std::string& name, StopCause cause = StopCause::interrupted) {
  const auto job = cluster.find(name);
  const AttemptId id{job->number, job->attempt()->number};
  for (domain::HostIndex host = 0; host < job->spec.hosts(); ++host) {
    if (is_final(cluster.find(name)->attempt()->hosts[host].state)) continue;
    wire::StateFact fact;
    fact.state = HostState::finished;
    fact.exit_code = 143;
    fact.stopped = cause;
    ASSERT_TRUE(cluster.report(name, host, fact));
  }
  for (domain::HostIndex host = 0; host < job->spec.hosts(); ++host)
    cluster.launcher.kill(id, host);
  cluster.run();
}

Result<domain::Job> interrupt(TestCluster& cluster, const std::string& name,
                              Interruption how = {}) {
  Result<domain::Job> result = internal("not answered");
  cluster.control->interrupt_job({"us-east-1", name}, std::move(how),
                                 [&](Result<domain::Job> answer) { result = std::move(answer); });
  cluster.run();
  return result;
}

TEST(Interruption, MakesTheJobWaitAndStartAgain) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(spot("a", 2)));
  for (domain::HostIndex host : {0u, 1u}) cluster.walk("a", host, HostState::running);
  cluster.clock.advance(100s);
  const auto answer = interrupt(cluster, "a", {1, 7s, "the machine is serviced"});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->attempt()->notice, 7s);
  EXPECT_EQ(cluster.find("a")->phase(), Phase::interrupted);
  cluster.clock.advance(5s);
  obey(cluster, "a");
  EXPECT_EQ(cluster.find("a")->state, JobState::active) << "capacity is free at once";
  EXPECT_EQ(cluster.launcher.gangs.size(), 1u);
  const auto order = wire::decode_order(cluster.launcher.gangs.at({1, 2}).members[0].order);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->runtime_left, 86400s - 105s);
  cluster.clock.advance(20s);
  for (domain::HostIndex host : {0u, 1u}) cluster.walk("a", host, HostState::running);
  cluster.clock.advance(10s);
  for (domain::HostIndex host : {0u, 1u}) cluster.walk("a", host, HostState::finished);

  const auto job = cluster.find("a");
  EXPECT_EQ(job->state, JobState::completed);
  EXPECT_EQ(
      cluster.phases("a"),
      (Lines{
          "Starting: Preparing the instances for training.", "Downloading: Downloading input data",
          "Training: Training image download completed. Training in progress.",
          "Interrupted: The training job was interrupted and starts again: algo-2: the machine is "
          "serviced",
          "Starting: Preparing the instances for training.", "Downloading: Downloading input data",
          "Training: Training image download completed. Training in progress.",
          "Uploading: Uploading generated training model", "Completed: Training job completed"}));
  EXPECT_EQ(*job->training_end - *job->training_start, 135s);
  EXPECT_EQ(job->ran(*job->training_end), 115s) << "the wait is not billed";
  EXPECT_NE(job->attempts[0].token, job->attempts[1].token);
  EXPECT_TRUE(job->attempts[0].hosts.empty());
}

TEST(Interruption, RetriesJobsWithoutSpotAndShowsTheReason) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  cluster.walk("a", 0, HostState::running);
  ASSERT_TRUE(interrupt(cluster, "a"));
  EXPECT_EQ(
      cluster.phases("a").back(),
      "Interrupted: The training job was interrupted and starts again: requested by a user (it is "
      "not a spot job: this one does not count as a retry)");
  EXPECT_TRUE(interrupt(cluster, "a")) << "a repetition changes nothing";
  obey(cluster, "a");
  EXPECT_EQ(cluster.find("a")->attempt()->number, 2u);
}

TEST(Interruption, RejectsJobsThatDoNotRun) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 1, "ml.m5.24xlarge")));
  EXPECT_EQ(interrupt(cluster, "a").error().kind, Kind::conflict);
  EXPECT_EQ(interrupt(cluster, "b").error().kind, Kind::not_found);
  ASSERT_TRUE(cluster.create(TestCluster::job("c")));
  EXPECT_EQ(interrupt(cluster, "c", {4, {}, ""}).error().message, "its only host is algo-1");
  cluster.walk("c", 0, HostState::running);
  ASSERT_TRUE(cluster.stop("c"));
  EXPECT_EQ(interrupt(cluster, "c").error().message,
            "it has no running hosts, since it is stopping");
  ASSERT_TRUE(cluster.stop("a"));
  EXPECT_FALSE(cluster.find("a")->attempt());
  EXPECT_EQ(interrupt(cluster, "a").error().message, "it has ended");
}

TEST(Interruption, IsFollowedByAStopThatIsRequestedMeanwhile) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(spot("a")));
  cluster.walk("a", 0, HostState::running);
  ASSERT_TRUE(interrupt(cluster, "a"));
  ASSERT_TRUE(cluster.stop("a"));
  obey(cluster, "a");
  EXPECT_EQ(cluster.find("a")->state, JobState::stopped);
  EXPECT_EQ(cluster.find("a")->phase(), Phase::stopped);
  EXPECT_EQ(cluster.find("a")->failure_reason, "");
}

TEST(Interruption, CompletesAJobThatFinishesBeforeItsOrder) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(spot("a")));
  cluster.walk("a", 0, HostState::uploading);
  ASSERT_TRUE(interrupt(cluster, "a"));
  ASSERT_TRUE(cluster.report("a", 0, HostState::finished));  // it had not received the order
  EXPECT_EQ(cluster.find("a")->state, JobState::completed);
}

TEST(Interruption, HappensAtTheTimesOfATrace) {
  TestCluster cluster;
  cluster.settings.spot.trace = {{cluster.clock.now() + 60s, "", "", "box-1", 1, 3}};
  cluster.restart();
  ASSERT_TRUE(cluster.create(spot("a")));
  ASSERT_TRUE(cluster.create(TestCluster::job("b")));
  cluster.walk("a", 0, HostState::running);
  cluster.walk("b", 0, HostState::running);
  cluster.clock.advance(61s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->phase(), Phase::interrupted);
  EXPECT_EQ(cluster.find("b")->phase(), Phase::training) << "it is not a spot job";
  obey(cluster, "a");
  EXPECT_EQ(cluster.find("a")->attempt()->number, 2u);
  cluster.run();
  EXPECT_TRUE(cluster.find("a")->attempt()->interruption.empty()) << "a line applies once";
}

TEST(Retry, TreatsALostHostOfASpotJobAsAnInterruption) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(spot("a", 2)));
  for (domain::HostIndex host : {0u, 1u}) cluster.walk("a", host, HostState::running);
  cluster.launcher.kill({1, 1}, 1);
  cluster.run();
  EXPECT_EQ(cluster.phases("a").back(),
            "Interrupted: The training job was interrupted and starts again: InternalServerError: "
            "lost the host's agent on machine box-1 (algo-2)");
  EXPECT_EQ(cluster.find("a")->stop_cause, StopCause::none);
  obey(cluster, "a");
  EXPECT_EQ(cluster.find("a")->attempt()->number, 2u);
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
}

TEST(Retry, HappensAsOftenAsAJobWithoutSpotRequests) {
  TestCluster cluster;
  CreateJob job = TestCluster::job("a");
  job.spec.retries_max = 1;
  ASSERT_TRUE(cluster.create(job));
  cluster.walk("a", 0, HostState::running);
  cluster.launcher.kill({1, 1}, 0);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->attempt()->number, 2u);
  EXPECT_EQ(cluster.find("a")->phase(), Phase::starting);
  cluster.walk("a", 0, HostState::running);
  cluster.launcher.kill({1, 2}, 0);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::failed);
  EXPECT_EQ(cluster.find("a")->failure_reason,
            "InternalServerError: lost the host's agent on machine box-1");
}

TEST(Retry, DoesNotHappenAfterFailuresOfTheAlgorithm) {
  TestCluster cluster;
  CreateJob job = spot("a");
  job.spec.retries_max = 5;
  ASSERT_TRUE(cluster.create(job));
  cluster.walk("a", 0, HostState::running);
  wire::StateFact exited;
  exited.state = HostState::draining;
  exited.exit_code = 1;
  exited.fault = domain::Fault::algorithm;
  exited.message = "ValueError";
  ASSERT_TRUE(cluster.report("a", 0, exited));
  cluster.walk("a", 0, HostState::finished);
  EXPECT_EQ(cluster.find("a")->failure_reason, "AlgorithmError: ValueError, exit code: 1");
}

TEST(Retry, TreatsADiedRuntimeAsAFaultOfThePlatform) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(spot("a")));
  cluster.walk("a", 0, HostState::running);
  wire::StateFact exited;
  exited.state = HostState::draining;
  exited.exit_code = 137;
  exited.fault = domain::Fault::internal;
  exited.message = "the process was lost";
  ASSERT_TRUE(cluster.report("a", 0, exited));
  EXPECT_EQ(cluster.find("a")->phase(), Phase::interrupted);
}

// A rank may report the loss of a peer before the peer's agent reports the cause.
TEST(Retry, FindsTheCauseThoughAConsequenceIsReportedFirst) {
  for (const bool spot_job : {true, false}) {
    TestCluster cluster;
    ASSERT_TRUE(cluster.create(spot_job ? spot("a", 2) : TestCluster::job("a", 2)));
    for (domain::HostIndex host : {0u, 1u}) cluster.walk("a", host, HostState::running);
    wire::StateFact reset;
    reset.state = HostState::draining;
    reset.exit_code = 1;
    reset.fault = domain::Fault::algorithm;
    reset.message = "ConnectionResetError";
    ASSERT_TRUE(cluster.report("a", 0, reset));
    reset.state = HostState::failed;
    ASSERT_TRUE(cluster.report("a", 0, reset));
    wire::StateFact lost;
    lost.state = HostState::failed;
    lost.exit_code = 137;
    lost.fault = domain::Fault::internal;
    lost.message = "the container runtime under the process was killed";
    ASSERT_TRUE(cluster.report("a", 1, lost));
    EXPECT_EQ(cluster.find("a")->state, spot_job ? JobState::waiting : JobState::failed);
    if (!spot_job) continue;
    EXPECT_EQ(cluster.find("a")->attempt()->interruption,
              "InternalServerError: the container runtime under the process was killed (algo-2)");
    obey(cluster, "a");
    EXPECT_EQ(cluster.find("a")->attempt()->number, 2u);
    for (domain::HostIndex host : {0u, 1u}) cluster.walk("a", host, HostState::finished);
    EXPECT_EQ(cluster.find("a")->state, JobState::completed);
  }
}

TEST(Retry, RepeatsFailedStartsAtGrowingIntervals) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(spot("a", 1)));
  cluster.launcher.refuses = denied("namespaces are switched off");
  cluster.launcher.kill({1, 1}, 0);
  for (int second = 0; second < 600; ++second) {
    cluster.run();
    cluster.clock.advance(1s);
  }
  const size_t tries = cluster.find("a")->attempts.size();
  EXPECT_GE(tries, 8u);
  EXPECT_LE(tries, 17u);
  cluster.clock.advance(3000s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->phase(), Phase::max_wait_time_exceeded);
}

TEST(Retry, WaitsUntilThePreviousAttemptHasEnded) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(spot("a")));
  cluster.walk("a", 0, HostState::running);
  ASSERT_TRUE(interrupt(cluster, "a"));
  wire::StateFact fact;
  fact.state = HostState::finished;
  fact.stopped = StopCause::interrupted;
  ASSERT_TRUE(cluster.report("a", 0, fact));
  EXPECT_EQ(cluster.find("a")->state, JobState::waiting);
  EXPECT_EQ(cluster.find("a")->wait_reason,
            "waits until the hosts of its previous attempt have ended");
  EXPECT_EQ(
      cluster.phases("a").back(),
      "Interrupted: The training job was interrupted and starts again: requested by a user; waits "
      "until the hosts of its previous attempt have ended");
  cluster.clock.advance(31s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->attempt()->number, 2u) << "it was stopped";
}

TEST(Retry, GivesEachAttemptItsOwnLogStreams) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(spot("a")));
  cluster.walk("a", 0, HostState::running);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(interrupt(cluster, "a"));
    obey(cluster, "a");
    cluster.walk("a", 0, HostState::running);
  }
  EXPECT_EQ(cluster.logs.streams("us-east-1", "/aws/sagemaker/TrainingJobs", "a/algo-1-")->size(),
            4u)
      << "both started within a second";
}

TEST(TimeLimit, OfTheRuntimeCountsOnlyRunningTime) {
  TestCluster cluster;
  CreateJob job = spot("a");
  job.spec.max_runtime_seconds = 100;
  ASSERT_TRUE(cluster.create(job));
  cluster.walk("a", 0, HostState::running);
  cluster.clock.advance(60s);
  ASSERT_TRUE(interrupt(cluster, "a"));
  obey(cluster, "a");
  cluster.clock.advance(500s);
  cluster.walk("a", 0, HostState::running);
  cluster.clock.advance(39s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  cluster.clock.advance(1s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->stop_cause, StopCause::max_runtime);
}

TEST(TimeLimit, MayBeEnforcedByTheAgent) {
  TestCluster cluster;
  CreateJob job = TestCluster::job("a");
  job.spec.max_runtime_seconds = 100;
  ASSERT_TRUE(cluster.create(job));
  cluster.walk("a", 0, HostState::running);
  wire::StateFact fact;
  fact.state = HostState::draining;
  fact.exit_code = 143;
  fact.stopped = StopCause::max_runtime;
  ASSERT_TRUE(cluster.report("a", 0, fact));
  EXPECT_EQ(cluster.find("a")->stop_cause, StopCause::max_runtime);
  cluster.walk("a", 0, HostState::finished);
  EXPECT_EQ(cluster.find("a")->phase(), Phase::max_runtime_exceeded);
}

TEST(TimeLimit, EndsASpotJobThatWaitsTooLong) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("b", 1, "ml.m5.2xlarge")));
  CreateJob job = spot("a");
  job.spec.max_runtime_seconds = job.spec.max_wait_seconds.emplace(60);
  ASSERT_TRUE(cluster.create(job));
  cluster.clock.advance(60s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::stopped);
  ASSERT_EQ(cluster.phases("a").size(), 3u);
  EXPECT_EQ(cluster.phases("a")[1], "Stopping: Stopping the training job");
  EXPECT_EQ(cluster.find("a")->phase(), Phase::max_wait_time_exceeded);
  EXPECT_FALSE(cluster.find("a")->training_start);
}

TEST(TimeLimit, EndsAJobThatIsPendingTooLong) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("b", 1, "ml.m5.2xlarge")));
  CreateJob job = TestCluster::job("a");
  job.spec.max_pending_seconds = 1800;
  ASSERT_TRUE(cluster.create(job));
  cluster.clock.advance(1800s);
  cluster.run();
  EXPECT_EQ(
      cluster.phases("a").back(),
      "Stopped: Training job stopped: it did not start within MaxPendingTimeInSeconds provided");
}

// -- warm pools

CreateJob kept(const std::string& name, int64_t seconds = 600) {
  CreateJob job = TestCluster::job(name, 1, "ml.m5.2xlarge");
  job.spec.role_arn = "arn:aws:iam::123456789012:role/r";
  job.spec.keep_alive_seconds = seconds;
  return job;
}
void finish(TestCluster& cluster, const std::string& name) {
  cluster.walk(name, 0, HostState::finished);
  cluster.launcher.kill({cluster.find(name)->number, 1}, 0);
  cluster.run();
}
domain::WarmPool pool(TestCluster& cluster, const std::string& name) {
  return *cluster.find(name)->warm_pool;
}
Result<domain::Job> keep_alive(TestCluster& cluster, const std::string& name, int64_t seconds) {
  Result<domain::Job> result = internal("not answered");
  cluster.control->keep_alive({"us-east-1", name}, seconds,
                              [&](Result<domain::Job> answer) { result = std::move(answer); });
  cluster.run();
  return result;
}

TEST(WarmPool, IsKeptThenReusedThenReleased) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(kept("a")));
  EXPECT_EQ(pool(cluster, "a").state, WarmPoolState::in_use);
  finish(cluster, "a");
  EXPECT_EQ(pool(cluster, "a").state, WarmPoolState::available);
  cluster.restart();
  EXPECT_EQ(pool(cluster, "a").state, WarmPoolState::available);
  CreateJob other = kept("b", 0);
  other.spec.role_arn = "arn:aws:iam::123456789012:role/other";
  ASSERT_TRUE(cluster.create(other));
  EXPECT_EQ(cluster.find("b")->wait_reason,
            "waits for 8 more vCPU on machine box-1 (needs 8, 0 free): held by the warm pool of "
            "training-job/a (8); and for 32 more GiB of memory on machine box-1 (needs 32, 0 "
            "free): held by the warm pool of training-job/a (32); starts by 2025-11-20 09:55:00 "
            "UTC at the latest");
  cluster.clock.advance(40s);
  ASSERT_TRUE(cluster.create(kept("c", 60)));
  EXPECT_EQ(cluster.find("c")->state, JobState::active) << "released hosts may be used by any job";
  EXPECT_EQ(pool(cluster, "a").state, WarmPoolState::reused);
  EXPECT_EQ(pool(cluster, "a").reused_by, "c");
  EXPECT_EQ(*pool(cluster, "a").ended - *pool(cluster, "a").available, 40s);
  finish(cluster, "c");
  cluster.clock.advance(60s);
  cluster.run();
  EXPECT_EQ(pool(cluster, "c").state, WarmPoolState::terminated);
  EXPECT_EQ(*pool(cluster, "c").ended - *pool(cluster, "c").available, 60s);
  EXPECT_EQ(cluster.find("b")->state, JobState::active);
}

TEST(WarmPool, IsKeptForItsUpdatedTime) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(kept("a")));
  finish(cluster, "a");
  ASSERT_TRUE(keep_alive(cluster, "a", 1000));
  cluster.clock.advance(700s);
  cluster.run();
  EXPECT_EQ(pool(cluster, "a").state, WarmPoolState::available);
  ASSERT_TRUE(keep_alive(cluster, "a", 0));
  EXPECT_EQ(pool(cluster, "a").state, WarmPoolState::terminated);
  EXPECT_EQ(keep_alive(cluster, "a", 5).error().message, "its warm pool is Terminated");
  ASSERT_TRUE(cluster.create(TestCluster::job("b")));
  EXPECT_EQ(keep_alive(cluster, "b", 5).error().message,
            "it was created without KeepAlivePeriodInSeconds");
}

TEST(WarmPool, IsNotKeptAfterALostHostOrWithoutHosts) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(kept("a")));
  cluster.walk("a", 0, HostState::running);
  cluster.launcher.kill({1, 1}, 0);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::failed);
  EXPECT_EQ(pool(cluster, "a").state, WarmPoolState::terminated);
  CreateJob nowhere = kept("b");
  nowhere.spec.groups[0].instance_type = "ml.m5.24xlarge";
  ASSERT_TRUE(cluster.create(nowhere));
  ASSERT_TRUE(cluster.stop("b"));
  EXPECT_EQ(pool(cluster, "b").state, WarmPoolState::terminated);
}

TEST(WarmPool, EndsWithItsMachine) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(kept("a")));
  finish(cluster, "a");
  cluster.launcher.the_machines[0].name = "box-2";
  cluster.run();
  EXPECT_EQ(pool(cluster, "a").state, WarmPoolState::terminated);
}

}  // namespace
}  // namespace trainyard::control
