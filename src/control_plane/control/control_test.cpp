#include "control/control.hpp"

#include <gtest/gtest.h>

#include "control/test_yard.hpp"
#include "reconcile/state.hpp"
#include "wire/codec.hpp"

namespace trainyard::control {
namespace {

using domain::AttemptId;
using domain::HostState;
using domain::JobState;
using domain::Phase;

using test::Yard;
using Lines = std::vector<std::string>;

TEST(Control, AJobOfTwoHostsGoesThroughItsPhases) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a", 2)));
  ASSERT_EQ(yard.find("a")->state, JobState::active);
  ASSERT_EQ(yard.launcher.agents.size(), 2u);
  const auto order = wire::decode_order(yard.launcher.gangs.at({1, 1}).members[1].order);
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->job_arn, "arn:aws:sagemaker:us-east-1:123456789012:training-job/a");
  EXPECT_EQ(order->log_stream, "a/algo-2-1763631900");
  EXPECT_EQ(yard.logs.streams("us-east-1", "/aws/sagemaker/TrainingJobs", "a/algo-")->size(), 2u)
      << "before any host ran";

  yard.walk("a", 0, HostState::running);
  EXPECT_EQ(yard.find("a")->phase(), Phase::downloading) << "one of two runs";
  yard.clock.advance(5s);
  yard.walk("a", 1, HostState::running);
  EXPECT_EQ(yard.find("a")->phase(), Phase::training);
  yard.clock.advance(60s);
  yard.walk("a", 0, HostState::uploading);
  yard.walk("a", 1, HostState::uploading);
  wire::StateFact done;
  done.state = HostState::finished;
  done.model_uri = "s3://b/a/output/model.tar.gz";
  ASSERT_TRUE(yard.report("a", 0, done));
  EXPECT_EQ(yard.find("a")->state, JobState::active);
  EXPECT_TRUE(yard.report("a", 1, HostState::finished)->final);

  const auto job = yard.find("a");
  EXPECT_EQ(job->state, JobState::completed);
  EXPECT_EQ(job->model_uri, "s3://b/a/output/model.tar.gz");
  EXPECT_EQ(
      yard.phases("a"),
      (Lines{
          "Starting: Preparing the instances for training.", "Downloading: Downloading input data",
          "Training: Training image download completed. Training in progress.",
          "Uploading: Uploading generated training model", "Completed: Training job completed"}));
  EXPECT_EQ(*job->training_end - *job->training_start, 65s);
  for (size_t i = 1; i < job->transitions.size(); ++i)
    EXPECT_EQ(job->transitions[i - 1].end, job->transitions[i].start);

  // Its agents have a while to end by themselves, then the launcher is told.
  EXPECT_EQ(yard.launcher.agents.size(), 2u);
  yard.clock.advance(31s);
  yard.run();
  EXPECT_TRUE(yard.launcher.agents.empty());
}

TEST(Control, AFailedHostEndsTheGangWithItsReason) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a", 2)));
  yard.walk("a", 0, HostState::running);
  yard.walk("a", 1, HostState::running);
  wire::StateFact exited;
  exited.state = HostState::draining;
  exited.exit_code = 3;
  ASSERT_TRUE(yard.report("a", 1, exited));
  EXPECT_EQ(yard.find("a")->stop_cause, domain::StopCause::host_failed)
      << "the others need not wait for its upload";
  yard.walk("a", 0, HostState::finished);
  wire::StateFact failed;
  failed.state = HostState::failed;
  failed.fault = domain::Fault::algorithm;
  failed.message = "ValueError: no such column";
  ASSERT_TRUE(yard.report("a", 1, failed));
  EXPECT_EQ(yard.find("a")->state, JobState::failed);
  EXPECT_EQ(yard.find("a")->failure_reason,
            "AlgorithmError: ValueError: no such column, exit code: 3 (algo-2)");
  EXPECT_EQ(yard.phases("a").back(),
            "Failed: AlgorithmError: ValueError: no such column, exit code: 3 (algo-2)");
}

TEST(Control, ALostAgentFailsItsJobByName) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a", 2)));
  yard.walk("a", 0, HostState::running);
  yard.launcher.kill({1, 1}, 1);
  yard.restart();
  yard.run();
  EXPECT_EQ(yard.find("a")->attempt()->hosts[1].state, HostState::lost)
      << "noticed by the server that came back";
  EXPECT_EQ(yard.find("a")->state, JobState::active) << "the other host is told to stop first";
  yard.walk("a", 0, HostState::finished);
  EXPECT_EQ(yard.find("a")->failure_reason,
            "InternalServerError: the host's agent on machine box-1 is gone (algo-2)");
}

TEST(Control, StopsWaitingJobsAtOnceAndActiveOnesInOrder) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a", 1, "ml.m5.2xlarge")));
  ASSERT_TRUE(yard.create(Yard::job("b")));
  EXPECT_EQ(yard.find("b")->wait_reason,
            "waits for 2 more vCPU on machine box-1 (needs 2, 0 free): held by training-job/a (8)"
            "; and for 8 more GiB of memory on machine box-1 (needs 8, 0 free): held by "
            "training-job/a (32); "
            "starts by 2025-11-21 10:52:00 UTC at the latest");
  EXPECT_EQ(yard.phases("b"), Lines{"Starting: " + yard.find("b")->wait_reason});
  EXPECT_EQ(yard.stop("b")->state, JobState::stopped);
  EXPECT_EQ(yard.stop("b").error().kind, Kind::conflict);
  EXPECT_EQ(yard.stop("c").error().kind, Kind::not_found);

  yard.walk("a", 0, HostState::running);
  EXPECT_EQ(yard.stop("a")->state, JobState::stopping);
  EXPECT_EQ(yard.stop("a")->state, JobState::stopping) << "twice is harmless";
  wire::StateFact killed;
  killed.state = HostState::draining;
  killed.exit_code = 143;
  ASSERT_TRUE(yard.report("a", 0, killed));
  yard.walk("a", 0, HostState::finished);
  EXPECT_EQ(yard.find("a")->state, JobState::stopped);
  EXPECT_EQ(yard.find("a")->failure_reason, "");
  EXPECT_EQ(yard.phases("a").back(), "Stopped: Training job stopped");
}

TEST(Control, AStopBeforeTheLauncherCouldStartItEndsTheJob) {
  Yard yard;
  yard.launcher.refuses = unavailable("not now");
  ASSERT_TRUE(yard.create(Yard::job("a")));
  EXPECT_EQ(yard.find("a")->state, JobState::active);
  ASSERT_TRUE(yard.stop("a"));
  EXPECT_EQ(yard.find("a")->state, JobState::stopped);
}

TEST(Control, MaxRuntimeCountsFromTraining) {
  Yard yard;
  CreateJob job = Yard::job("a");
  job.spec.max_runtime_seconds = 60;
  ASSERT_TRUE(yard.create(job));
  yard.clock.advance(300s);
  yard.walk("a", 0, HostState::running);
  yard.clock.advance(59s);
  yard.run();
  EXPECT_EQ(yard.find("a")->state, JobState::active);
  yard.clock.advance(1s);
  yard.run();
  EXPECT_EQ(yard.find("a")->state, JobState::stopping);
  yard.walk("a", 0, HostState::finished);
  EXPECT_EQ(yard.find("a")->phase(), Phase::max_runtime_exceeded);
  EXPECT_EQ(yard.find("a")->state, JobState::stopped);
}

TEST(Control, ALauncherThatCannotSaysWhyInTheJob) {
  Yard yard;
  yard.launcher.refuses = denied("user namespaces are switched off");
  ASSERT_TRUE(yard.create(Yard::job("a")));
  EXPECT_EQ(
      yard.find("a")->failure_reason,
      "InternalServerError: the hosts could not be started: user namespaces are switched off");
}

TEST(Control, ALauncherThatCannotNowIsAskedAgainForAWhile) {
  Yard yard;
  yard.launcher.refuses = exhausted("no addresses left");
  ASSERT_TRUE(yard.create(Yard::job("a")));
  ASSERT_TRUE(yard.create(Yard::job("b")));
  const int before = yard.launcher.ensured;
  yard.run();
  EXPECT_GT(yard.launcher.ensured, before);
  EXPECT_EQ(yard.find("a")->state, JobState::active);
  yard.clock.advance(yard.settings.launch_timeout);
  yard.run();
  EXPECT_EQ(yard.find("a")->state, JobState::failed);
}

TEST(Control, RefusesWhatCannotBe) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a")));
  EXPECT_EQ(yard.create(Yard::job("a")).error().kind, Kind::conflict);
  EXPECT_EQ(yard.create(Yard::job("b", 1, "ml.zz.large")).error().kind, Kind::invalid);
  CreateJob job = Yard::job("c");
  job.spec.image = "debian";
  EXPECT_EQ(yard.create(job).error().kind, Kind::invalid);
  yard.settings.backlog_commands_max = 0;
  yard.restart();
  EXPECT_EQ(yard.create(Yard::job("d")).error().kind, Kind::exhausted);
}

TEST(Control, FactsAreAppliedOnceAndInOrder) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a")));
  wire::StateFact fact;
  fact.number = 1;
  fact.state = HostState::preparing;
  EXPECT_EQ(yard.report("a", 0, fact)->facts_applied, 1u);
  EXPECT_EQ(yard.report("a", 0, fact)->facts_applied, 1u) << "a repeat is acknowledged";
  fact.number = 3;
  EXPECT_EQ(yard.report("a", 0, fact).error().kind, Kind::conflict) << "a gap is not";
  fact.number = 2;
  fact.state = HostState::placed;
  EXPECT_EQ(yard.report("a", 0, fact)->facts_applied, 2u) << "what cannot be is counted";
  EXPECT_EQ(yard.find("a")->attempt()->hosts[0].state, HostState::preparing);
}

TEST(Control, AHostsAddressIsKept) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a", 1)));
  wire::StateFact fact;
  fact.state = HostState::preparing;
  fact.address = "10.1.0.2";
  ASSERT_TRUE(yard.report("a", 0, fact));
  yard.walk("a", 0, HostState::running);
  EXPECT_EQ(yard.find("a")->attempt()->hosts[0].address, "10.1.0.2");
}

TEST(Control, TheFirstInstancePreferenceWithCapacityIsSelected) {
  Yard yard;
  auto job = Yard::job("a", 1);
  job.spec.preferences = {{"homogeneousCluster", "ml.p4d.24xlarge", 1},
                          {"homogeneousCluster", "ml.m5.large", 2}};
  job.spec.groups = {job.spec.preferences[0]};
  ASSERT_TRUE(yard.create(job));
  const auto placed = yard.find("a");
  ASSERT_EQ(placed->state, JobState::active) << placed->wait_reason;
  EXPECT_EQ(placed->selected, 1u);
  EXPECT_EQ(placed->spec.instance_type(0), "ml.m5.large");
  EXPECT_EQ(placed->attempt()->hosts.size(), 2u);
  const auto order = wire::decode_order(yard.launcher.gangs.at({1, 1}).members[1].order);
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->spec.instance_type(1), "ml.m5.large");
  test::Replay replay;
  ASSERT_TRUE(replay.run(*yard.ledger));
  EXPECT_EQ(dump(to_json(*yard.ledger->find_job(1)), 1), dump(to_json(replay.jobs.at(1)), 1));
  EXPECT_EQ(yard.ledger->find_job(1)->spec.hosts(), 2u) << "as read from its table";
}

TEST(Control, AHostThatSeemsToHangIsNamedInTheStatus) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a")));
  const auto say = [&](uint64_t number, const std::string& message) {
    wire::StateFact fact;
    fact.number = number;
    fact.state = HostState::running;
    fact.message = message;
    EXPECT_TRUE(yard.report("a", 0, fact));
    return yard.find("a")->transitions.back().message;
  };
  const std::string usual = "Training image download completed. Training in progress.";
  EXPECT_EQ(say(1, "whatever the agent calls it"), usual);
  EXPECT_EQ(say(2, "algo-1 seems to hang"), usual + " algo-1 seems to hang");
  EXPECT_EQ(yard.find("a")->phase(), domain::Phase::training);
  EXPECT_EQ(say(3, ""), usual);
}

TEST(Control, AHostSaysHowFarItIs) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a", 2)));
  wire::StateFact word;
  word.state = HostState::downloading;
  word.message = "Downloading the training image: 1 of 2 MiB";
  yard.walk("a", 0, HostState::downloading);
  ASSERT_TRUE(yard.report("a", 0, word));
  yard.walk("a", 1, HostState::downloading);
  EXPECT_EQ(yard.phases("a").back(), "Downloading: " + word.message)
      << "another host's beginning says less";
  yard.walk("a", 0, HostState::running);
  yard.walk("a", 1, HostState::running);
  ASSERT_TRUE(yard.report("a", 0, word)) << "what comes late is counted";
  EXPECT_EQ(yard.phases("a").back(),
            "Training: Training image download completed. Training in progress.");
}

TEST(Control, AnImageThatWasNotChosenSaysSo) {
  Yard yard;
  domain::Image stand_in;
  stand_in.note = "The job runs on this machine's own system.";
  yard.settings.images["pytorch-training"] = stand_in;
  yard.restart();
  CreateJob job = Yard::job("a");
  job.spec.image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.0";
  ASSERT_TRUE(yard.create(std::move(job)));
  EXPECT_EQ(yard.find("a")->note, stand_in.note);
}

TEST(Control, TagsAreMergedAndRemoved) {
  Yard yard;
  CreateJob job = Yard::job("a");
  job.tags = {{"team", "red"}, {"cost", "1"}};
  ASSERT_TRUE(yard.create(job));
  const std::string arn = job_arn("123456789012", job.key);
  std::vector<domain::Tag> all;
  yard.control->set_tags(arn, {{"team", "blue"}}, {"cost"}, [&](auto answer) { all = *answer; });
  yard.run();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].value, "blue");
  EXPECT_EQ(yard.control->tags(arn)->size(), 1u);
  Kind kind{};
  yard.control->set_tags(arn, std::vector<domain::Tag>(1, {"x", ""}), {},
                         [&](auto answer) { all = *answer; });
  std::vector<domain::Tag> many;
  for (int i = 0; i < 50; ++i) many.push_back({std::to_string(i), ""});
  yard.control->set_tags(arn, many, {}, [&](auto answer) { kind = answer.error().kind; });
  yard.run();
  EXPECT_EQ(all.size(), 2u);
  EXPECT_EQ(kind, Kind::invalid);
}

TEST(Control, StrangersAreRemovedAtTheStart) {
  Yard yard;
  yard.launcher.agents.push_back({{99, 1}, "old", 0, true});
  ASSERT_TRUE(yard.create(Yard::job("a")));
  ASSERT_EQ(yard.launcher.agents.size(), 1u);
  EXPECT_EQ(yard.launcher.agents[0].attempt, (AttemptId{1, 1}));
}

// The remains of a finished job count until they are removed, also after a restart.
TEST(Control, WhatIsLeftOfAJobHoldsItsMachine) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a", 1, "ml.m5.2xlarge")));
  yard.walk("a", 0, HostState::finished);
  yard.restart();
  ASSERT_TRUE(yard.create(Yard::job("b", 1, "ml.m5.2xlarge")));
  EXPECT_EQ(yard.find("b")->state, JobState::waiting);
  EXPECT_EQ(yard.find("b")->wait_reason,
            "waits for 8 more vCPU on machine box-1 (needs 8, 0 free): held by training-job/a (8)"
            "; and for 32 more GiB of memory on machine box-1 (needs 32, 0 free): held by "
            "training-job/a (32)");
  yard.launcher.kill({1, 1}, 0);
  yard.run();
  EXPECT_EQ(yard.find("b")->state, JobState::active);
}

TEST(Control, WaitingReasonsOfAJobAreObeyedByAddingAMachine) {
  Yard yard;
  ASSERT_TRUE(yard.create(Yard::job("a", 1, "ml.m5.12xlarge")));
  EXPECT_EQ(yard.find("a")->wait_reason,
            "needs 48 vCPU on one machine, the largest has 8: add 1 machine with at least 48 vCPU "
            "and 192 "
            "GiB of memory");
  yard.launcher.the_machines.push_back({"box-2", 48, int64_t{192} << 30, 0});
  yard.run();
  EXPECT_EQ(yard.find("a")->attempt()->hosts[0].machine, "box-2");
  EXPECT_EQ(yard.find("a")->wait_reason, "");
}

// The tables are what replaying the commands yields.
TEST(Control, ReplayRebuildsTheTables) {
  Yard yard;
  CreateJob first = Yard::job("a", 2);
  first.tags = {{"k", "v"}};
  ASSERT_TRUE(yard.create(first));
  ASSERT_TRUE(yard.create(Yard::job("b", 1, "ml.m5.2xlarge")));
  yard.walk("a", 0, HostState::running);
  ASSERT_TRUE(yard.stop("a"));
  yard.walk("a", 0, HostState::finished);
  yard.launcher.kill({1, 1}, 1);
  yard.run();
  yard.clock.advance(60s);
  yard.run();
  yard.walk("b", 0, HostState::running);
  yard.clock.advance(86400s);
  yard.run();

  test::Replay replay;
  ASSERT_TRUE(replay.run(*yard.ledger)) << "only what changed something is kept";
  ASSERT_EQ(replay.jobs.size(), 2u);
  for (const auto& [number, job] : replay.jobs)
    EXPECT_EQ(dump(to_json(*yard.ledger->find_job(number)), 1), dump(to_json(job), 1));
  EXPECT_EQ(replay.tags.size(), 1u);
  EXPECT_EQ(replay.jobs.at(1).state, JobState::stopped) << "the lost host had not run yet";
  EXPECT_EQ(replay.jobs.at(2).stop_cause, domain::StopCause::max_runtime);
}

// A job that waits for a machine would otherwise wait for the removal, and for the rest as well.
TEST(Control, StartsBeforeItRemovesAndRestsForWhatFails) {
  Yard yard;
  Lines calls;
  yard.launcher.while_called = [&](const std::string& call) {
    calls.push_back(call);
    yard.clock.advance(1s);
  };
  yard.control->create_job(Yard::job("a"), [](const auto&) {});
  yard.control->commit_step();
  yard.control->reconcile_step();
  yard.control->commit_step();
  yard.launcher.agents.push_back({{99, 1}, "old", 0, true});
  EXPECT_EQ(yard.control->reconcile_step().count(), 0)
      << "time went by in what was started and removed only";
  EXPECT_EQ(calls, (Lines{"ensure", "remove"}));
  // A failed start would otherwise be retried at once, forever.
  yard.control->create_job(Yard::job("b"), [](const auto&) {});
  yard.control->commit_step();
  yard.control->reconcile_step();
  yard.control->commit_step();
  yard.launcher.refuses = unavailable("not now");
  calls.clear();
  EXPECT_EQ(yard.control->reconcile_step(), 1s);
  EXPECT_EQ(calls, Lines{"ensure"});
}

}  // namespace
}  // namespace trainyard::control
