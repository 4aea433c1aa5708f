// Tests jobs that are retried, run out of time, or leave their hosts to the next one.
#include <gtest/gtest.h>

#include "control/test_yard.hpp"
#include "wire/codec.hpp"

namespace trainyard::control {
namespace {

using domain::AttemptId;
using domain::HostState;
using domain::JobState;
using domain::Phase;
using domain::StopCause;
using domain::WarmPoolState;
using test::Yard;
using Lines = std::vector<std::string>;

CreateJob spot(const std::string& name, uint32_t hosts = 1) {
  CreateJob job = Yard::job(name, hosts);
  job.spec.spot = true;
  job.spec.max_wait_seconds = 3600;
  return job;
}

// The agent follows its order: its process ends, it finishes, and its host is gone.
void obey(Yard& yard, const std::string& name, StopCause cause = StopCause::interrupted) {
  const auto job = yard.find(name);
  const AttemptId id{job->number, job->attempt()->number};
  for (domain::HostIndex host = 0; host < job->spec.hosts(); ++host) {
    if (is_final(yard.find(name)->attempt()->hosts[host].state)) continue;
    wire::StateFact fact;
    fact.state = HostState::finished;
    fact.exit_code = 143;
    fact.stopped = cause;
    ASSERT_TRUE(yard.report(name, host, fact));
  }
  for (domain::HostIndex host = 0; host < job->spec.hosts(); ++host) yard.launcher.kill(id, host);
  yard.run();
}

Result<domain::Job> interrupt(Yard& yard, const std::string& name, Interruption how = {}) {
  Result<domain::Job> result = internal("not answered");
  yard.control->interrupt_job({"us-east-1", name}, std::move(how),
                              [&](Result<domain::Job> answer) { result = std::move(answer); });
  yard.run();
  return result;
}

TEST(Interruption, TheJobWaitsStartsAndGoesOn) {
  Yard yard;
  ASSERT_TRUE(yard.create(spot("a", 2)));
  for (domain::HostIndex host : {0u, 1u}) yard.walk("a", host, HostState::running);
  yard.clock.advance(100s);
  const auto answer = interrupt(yard, "a", {1, 7s, "the machine is serviced"});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->attempt()->notice, 7s);
  EXPECT_EQ(yard.find("a")->phase(), Phase::interrupted);
  yard.clock.advance(5s);
  obey(yard, "a");
  EXPECT_EQ(yard.find("a")->state, JobState::active) << "there is room at once";
  EXPECT_EQ(yard.launcher.gangs.size(), 1u);
  const auto order = wire::decode_order(yard.launcher.gangs.at({1, 2}).members[0].order);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->runtime_left, 86400s - 105s);
  yard.clock.advance(20s);
  for (domain::HostIndex host : {0u, 1u}) yard.walk("a", host, HostState::running);
  yard.clock.advance(10s);
  for (domain::HostIndex host : {0u, 1u}) yard.walk("a", host, HostState::finished);

  const auto job = yard.find("a");
  EXPECT_EQ(job->state, JobState::completed);
  EXPECT_EQ(
      yard.phases("a"),
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

TEST(Interruption, AJobThatIsNoSpotJobIsTriedAgainAndToldSo) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a")));
  yard.walk("a", 0, HostState::running);
  ASSERT_TRUE(interrupt(yard, "a"));
  EXPECT_EQ(
      yard.phases("a").back(),
      "Interrupted: The training job was interrupted and starts again: requested by a user (it is "
      "not a spot "
      "job: this one does not count as a retry)");
  EXPECT_TRUE(interrupt(yard, "a")) << "twice is once";
  obey(yard, "a");
  EXPECT_EQ(yard.find("a")->attempt()->number, 2u);
}

TEST(Interruption, NothingIsInterruptedThatDoesNotRun) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a", 1, "ml.m5.24xlarge")));
  EXPECT_EQ(interrupt(yard, "a").error().kind, Kind::conflict);
  EXPECT_EQ(interrupt(yard, "b").error().kind, Kind::not_found);
  ASSERT_TRUE(yard.create(Yard::job("c")));
  EXPECT_EQ(interrupt(yard, "c", {4, {}, ""}).error().message, "it has 1 hosts: algo-1 to algo-1");
  yard.walk("c", 0, HostState::running);
  ASSERT_TRUE(yard.stop("c"));
  EXPECT_EQ(interrupt(yard, "c").error().message,
            "nothing of it runs that could be interrupted: it is stopping");
}

TEST(Interruption, AStopMeanwhileStops) {
  Yard yard;
  ASSERT_TRUE(yard.create(spot("a")));
  yard.walk("a", 0, HostState::running);
  ASSERT_TRUE(interrupt(yard, "a"));
  ASSERT_TRUE(yard.stop("a"));
  obey(yard, "a");
  EXPECT_EQ(yard.find("a")->state, JobState::stopped);
  EXPECT_EQ(yard.find("a")->phase(), Phase::stopped);
  EXPECT_EQ(yard.find("a")->failure_reason, "");
}

TEST(Interruption, WhatWasDoneAllTheSameIsDone) {
  Yard yard;
  ASSERT_TRUE(yard.create(spot("a")));
  yard.walk("a", 0, HostState::uploading);
  ASSERT_TRUE(interrupt(yard, "a"));
  ASSERT_TRUE(yard.report("a", 0, HostState::finished));  // it was not told yet
  EXPECT_EQ(yard.find("a")->state, JobState::completed);
}

TEST(Interruption, ATraceTakesAndGivesBackByTime) {
  Yard yard;
  yard.settings.spot.trace = {{yard.clock.now() + 60s, "", "", "box-1", 1, 3}};
  yard.restart();
  ASSERT_TRUE(yard.create(spot("a")));
  ASSERT_TRUE(yard.create(Yard::job("b")));
  yard.walk("a", 0, HostState::running);
  yard.walk("b", 0, HostState::running);
  yard.clock.advance(61s);
  yard.run();
  EXPECT_EQ(yard.find("a")->phase(), Phase::interrupted);
  EXPECT_EQ(yard.find("b")->phase(), Phase::training) << "no spot job";
  obey(yard, "a");
  EXPECT_EQ(yard.find("a")->attempt()->number, 2u);
  yard.run();
  EXPECT_TRUE(yard.find("a")->attempt()->interruption.empty()) << "a line counts once";
}

TEST(Retry, ALostHostOfASpotJobIsAnInterruption) {
  Yard yard;
  ASSERT_TRUE(yard.create(spot("a", 2)));
  for (domain::HostIndex host : {0u, 1u}) yard.walk("a", host, HostState::running);
  yard.launcher.kill({1, 1}, 1);
  yard.run();
  EXPECT_EQ(yard.phases("a").back(),
            "Interrupted: The training job was interrupted and starts again: InternalServerError: "
            "the host's "
            "agent on "
            "machine box-1 is gone (algo-2)");
  EXPECT_EQ(yard.find("a")->stop_cause, StopCause::none);
  obey(yard, "a");
  EXPECT_EQ(yard.find("a")->attempt()->number, 2u);
  EXPECT_EQ(yard.find("a")->state, JobState::active);
}

TEST(Retry, OthersAsOftenAsTheyAskedFor) {
  Yard yard;
  CreateJob job = Yard::job("a");
  job.spec.retries_max = 1;
  ASSERT_TRUE(yard.create(job));
  yard.walk("a", 0, HostState::running);
  yard.launcher.kill({1, 1}, 0);
  yard.run();
  EXPECT_EQ(yard.find("a")->attempt()->number, 2u);
  EXPECT_EQ(yard.find("a")->phase(), Phase::starting);
  yard.walk("a", 0, HostState::running);
  yard.launcher.kill({1, 2}, 0);
  yard.run();
  EXPECT_EQ(yard.find("a")->state, JobState::failed);
  EXPECT_EQ(yard.find("a")->failure_reason,
            "InternalServerError: the host's agent on machine box-1 is gone");
}

TEST(Retry, WhatIsTheUsersIsNotTriedAgain) {
  Yard yard;
  CreateJob job = spot("a");
  job.spec.retries_max = 5;
  ASSERT_TRUE(yard.create(job));
  yard.walk("a", 0, HostState::running);
  wire::StateFact exited;
  exited.state = HostState::draining;
  exited.exit_code = 1;
  exited.fault = domain::Fault::algorithm;
  exited.message = "ValueError";
  ASSERT_TRUE(yard.report("a", 0, exited));
  yard.walk("a", 0, HostState::finished);
  EXPECT_EQ(yard.find("a")->failure_reason, "AlgorithmError: ValueError, exit code: 1");
}

TEST(Retry, ARuntimeThatDiedIsOurs) {
  Yard yard;
  ASSERT_TRUE(yard.create(spot("a")));
  yard.walk("a", 0, HostState::running);
  wire::StateFact exited;
  exited.state = HostState::draining;
  exited.exit_code = 137;
  exited.fault = domain::Fault::internal;
  exited.message = "the process was lost";
  ASSERT_TRUE(yard.report("a", 0, exited));
  EXPECT_EQ(yard.find("a")->phase(), Phase::interrupted);
}

// A rank whose peer's runtime died reports it before the peer's own agent does.
TEST(Retry, AConsequenceThatIsHeardFirstIsNotTheCause) {
  for (const bool spot_job : {true, false}) {
    Yard yard;
    ASSERT_TRUE(yard.create(spot_job ? spot("a", 2) : Yard::job("a", 2)));
    for (domain::HostIndex host : {0u, 1u}) yard.walk("a", host, HostState::running);
    wire::StateFact reset;
    reset.state = HostState::draining;
    reset.exit_code = 1;
    reset.fault = domain::Fault::algorithm;
    reset.message = "ConnectionResetError";
    ASSERT_TRUE(yard.report("a", 0, reset));
    reset.state = HostState::failed;
    ASSERT_TRUE(yard.report("a", 0, reset));
    wire::StateFact lost;
    lost.state = HostState::failed;
    lost.exit_code = 137;
    lost.fault = domain::Fault::internal;
    lost.message = "the container runtime under the process was killed";
    ASSERT_TRUE(yard.report("a", 1, lost));
    EXPECT_EQ(yard.find("a")->state, spot_job ? JobState::waiting : JobState::failed);
    if (!spot_job) continue;
    EXPECT_EQ(yard.find("a")->attempt()->interruption,
              "InternalServerError: the container runtime under the process was killed (algo-2)");
    obey(yard, "a");
    EXPECT_EQ(yard.find("a")->attempt()->number, 2u);
    for (domain::HostIndex host : {0u, 1u}) yard.walk("a", host, HostState::finished);
    EXPECT_EQ(yard.find("a")->state, JobState::completed);
  }
}

TEST(Retry, WhatCannotStartIsTriedMoreAndMoreSeldom) {
  Yard yard;
  ASSERT_TRUE(yard.create(spot("a", 1)));
  yard.launcher.refuses = denied("namespaces are switched off");
  yard.launcher.kill({1, 1}, 0);
  for (int second = 0; second < 600; ++second) {
    yard.run();
    yard.clock.advance(1s);
  }
  const size_t tries = yard.find("a")->attempts.size();
  EXPECT_GE(tries, 8u);
  EXPECT_LE(tries, 17u);
  yard.clock.advance(3000s);
  yard.run();
  EXPECT_EQ(yard.find("a")->phase(), Phase::max_wait_time_exceeded);
}

TEST(Retry, TheFormerAttemptGoesFirst) {
  Yard yard;
  ASSERT_TRUE(yard.create(spot("a")));
  yard.walk("a", 0, HostState::running);
  ASSERT_TRUE(interrupt(yard, "a"));
  wire::StateFact fact;
  fact.state = HostState::finished;
  fact.stopped = StopCause::interrupted;
  ASSERT_TRUE(yard.report("a", 0, fact));
  EXPECT_EQ(yard.find("a")->state, JobState::waiting);
  EXPECT_EQ(yard.find("a")->wait_reason, "waits until the hosts of its former attempt are gone");
  EXPECT_EQ(
      yard.phases("a").back(),
      "Interrupted: The training job was interrupted and starts again: requested by a user; waits "
      "until the "
      "hosts of its former attempt are gone");
  yard.clock.advance(31s);
  yard.run();
  EXPECT_EQ(yard.find("a")->attempt()->number, 2u) << "it was told to go";
}

TEST(Retry, EachAttemptHasItsOwnLogStreams) {
  Yard yard;
  ASSERT_TRUE(yard.create(spot("a")));
  yard.walk("a", 0, HostState::running);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(interrupt(yard, "a"));
    obey(yard, "a");
    yard.walk("a", 0, HostState::running);
  }
  EXPECT_EQ(yard.logs.streams("us-east-1", "/aws/sagemaker/TrainingJobs", "a/algo-1-")->size(), 4u)
      << "within one second";
}

TEST(Times, MaxRuntimeCountsWhatRan) {
  Yard yard;
  CreateJob job = spot("a");
  job.spec.max_runtime_seconds = 100;
  ASSERT_TRUE(yard.create(job));
  yard.walk("a", 0, HostState::running);
  yard.clock.advance(60s);
  ASSERT_TRUE(interrupt(yard, "a"));
  obey(yard, "a");
  yard.clock.advance(500s);
  yard.walk("a", 0, HostState::running);
  yard.clock.advance(39s);
  yard.run();
  EXPECT_EQ(yard.find("a")->state, JobState::active);
  yard.clock.advance(1s);
  yard.run();
  EXPECT_EQ(yard.find("a")->stop_cause, StopCause::max_runtime);
}

TEST(Times, AnAgentThatSawToTheTimeIsBelieved) {
  Yard yard;
  CreateJob job = Yard::job("a");
  job.spec.max_runtime_seconds = 100;
  ASSERT_TRUE(yard.create(job));
  yard.walk("a", 0, HostState::running);
  wire::StateFact fact;
  fact.state = HostState::draining;
  fact.exit_code = 143;
  fact.stopped = StopCause::max_runtime;
  ASSERT_TRUE(yard.report("a", 0, fact));
  EXPECT_EQ(yard.find("a")->stop_cause, StopCause::max_runtime);
  yard.walk("a", 0, HostState::finished);
  EXPECT_EQ(yard.find("a")->phase(), Phase::max_runtime_exceeded);
}

TEST(Times, ASpotJobWaitsNoLongerThanItMay) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("b", 1, "ml.m5.2xlarge")));
  CreateJob job = spot("a");
  job.spec.max_runtime_seconds = job.spec.max_wait_seconds.emplace(60);
  ASSERT_TRUE(yard.create(job));
  yard.clock.advance(60s);
  yard.run();
  EXPECT_EQ(yard.find("a")->state, JobState::stopped);
  ASSERT_EQ(yard.phases("a").size(), 3u);
  EXPECT_EQ(yard.phases("a")[1], "Stopping: Stopping the training job");
  EXPECT_EQ(yard.find("a")->phase(), Phase::max_wait_time_exceeded);
  EXPECT_FALSE(yard.find("a")->training_start);
}

TEST(Times, AJobPendsNoLongerThanItMay) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("b", 1, "ml.m5.2xlarge")));
  CreateJob job = Yard::job("a");
  job.spec.max_pending_seconds = 1800;
  ASSERT_TRUE(yard.create(job));
  yard.clock.advance(1800s);
  yard.run();
  EXPECT_EQ(
      yard.phases("a").back(),
      "Stopped: Training job stopped: it did not start within MaxPendingTimeInSeconds provided");
}

// -- warm pools

CreateJob kept(const std::string& name, int64_t seconds = 600) {
  CreateJob job = Yard::job(name, 1, "ml.m5.2xlarge");
  job.spec.role_arn = "arn:aws:iam::123456789012:role/r";
  job.spec.keep_alive_seconds = seconds;
  return job;
}
void finish(Yard& yard, const std::string& name) {
  yard.walk(name, 0, HostState::finished);
  yard.launcher.kill({yard.find(name)->number, 1}, 0);
  yard.run();
}
domain::WarmPool pool(Yard& yard, const std::string& name) { return *yard.find(name)->warm_pool; }
Result<domain::Job> keep_alive(Yard& yard, const std::string& name, int64_t seconds) {
  Result<domain::Job> result = internal("not answered");
  yard.control->keep_alive({"us-east-1", name}, seconds,
                           [&](Result<domain::Job> answer) { result = std::move(answer); });
  yard.run();
  return result;
}

TEST(WarmPool, IsHeldThenReusedThenGivenBack) {
  Yard yard;
  ASSERT_TRUE(yard.create(kept("a")));
  EXPECT_EQ(pool(yard, "a").state, WarmPoolState::in_use);
  finish(yard, "a");
  EXPECT_EQ(pool(yard, "a").state, WarmPoolState::available);
  yard.restart();
  EXPECT_EQ(pool(yard, "a").state, WarmPoolState::available);
  CreateJob other = kept("b", 0);
  other.spec.role_arn = "arn:aws:iam::123456789012:role/other";
  ASSERT_TRUE(yard.create(other));
  EXPECT_EQ(yard.find("b")->wait_reason,
            "waits for 8 more vCPU on machine box-1 (needs 8, 0 free): held by the warm pool of "
            "training-job/a (8)"
            "; and for 32 more GiB of memory on machine box-1 (needs 32, 0 free): held by the warm "
            "pool of "
            "training-job/a (32); starts by 2025-11-20 09:55:00 UTC at the latest");
  yard.clock.advance(40s);
  ASSERT_TRUE(yard.create(kept("c", 60)));
  EXPECT_EQ(yard.find("c")->state, JobState::active) << "whoever waits";
  EXPECT_EQ(pool(yard, "a").state, WarmPoolState::reused);
  EXPECT_EQ(pool(yard, "a").reused_by, "c");
  EXPECT_EQ(*pool(yard, "a").ended - *pool(yard, "a").available, 40s);
  finish(yard, "c");
  yard.clock.advance(60s);
  yard.run();
  EXPECT_EQ(pool(yard, "c").state, WarmPoolState::terminated);
  EXPECT_EQ(*pool(yard, "c").ended - *pool(yard, "c").available, 60s);
  EXPECT_EQ(yard.find("b")->state, JobState::active);
}

TEST(WarmPool, IsKeptForAsLongAsItWasUpdatedTo) {
  Yard yard;
  ASSERT_TRUE(yard.create(kept("a")));
  finish(yard, "a");
  ASSERT_TRUE(keep_alive(yard, "a", 1000));
  yard.clock.advance(700s);
  yard.run();
  EXPECT_EQ(pool(yard, "a").state, WarmPoolState::available);
  ASSERT_TRUE(keep_alive(yard, "a", 0));
  EXPECT_EQ(pool(yard, "a").state, WarmPoolState::terminated);
  EXPECT_EQ(keep_alive(yard, "a", 5).error().message, "its warm pool is Terminated");
  ASSERT_TRUE(yard.create(Yard::job("b")));
  EXPECT_EQ(keep_alive(yard, "b", 5).error().message,
            "it was created without KeepAlivePeriodInSeconds");
}

TEST(WarmPool, NothingIsKeptOfALostHostOrOfNone) {
  Yard yard;
  ASSERT_TRUE(yard.create(kept("a")));
  yard.walk("a", 0, HostState::running);
  yard.launcher.kill({1, 1}, 0);
  yard.run();
  EXPECT_EQ(yard.find("a")->state, JobState::failed);
  EXPECT_EQ(pool(yard, "a").state, WarmPoolState::terminated);
  CreateJob nowhere = kept("b");
  nowhere.spec.groups[0].instance_type = "ml.m5.24xlarge";
  ASSERT_TRUE(yard.create(nowhere));
  ASSERT_TRUE(yard.stop("b"));
  EXPECT_EQ(pool(yard, "b").state, WarmPoolState::terminated);
}

TEST(WarmPool, EndsWithItsMachine) {
  Yard yard;
  ASSERT_TRUE(yard.create(kept("a")));
  finish(yard, "a");
  yard.launcher.the_machines[0].name = "box-2";
  yard.run();
  EXPECT_EQ(pool(yard, "a").state, WarmPoolState::terminated);
}

}  // namespace
}  // namespace trainyard::control
