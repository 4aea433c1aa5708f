#include "control/control.hpp"

#include <gtest/gtest.h>

#include "control/testing/test_cluster.hpp"
#include "domain/tracing/trace_context.hpp"
#include "reconcile/state.hpp"
#include "wire/codec.hpp"

namespace trainyard::control {
namespace {

using domain::AttemptId;
using domain::HostState;
using domain::JobState;
using domain::Phase;
using domain::StopCause;

using test::TestCluster;
using Lines = std::vector<std::string>;

TEST(Control, TakesAJobOfTwoHostsThroughItsPhases) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 2)));
  ASSERT_EQ(cluster.find("a")->state, JobState::active);
  ASSERT_EQ(cluster.launcher.agents.size(), 2u);
  const auto order = wire::decode_order(cluster.launcher.gangs.at({1, 1}).members[1].order);
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->job_arn, "arn:aws:sagemaker:us-east-1:123456789012:training-job/a");
  EXPECT_EQ(order->log_stream, "a/algo-2-1763631900");
  EXPECT_EQ(cluster.logs.streams("us-east-1", "/aws/sagemaker/TrainingJobs", "a/algo-")->size(), 2u)
      << "no host runs yet";

  cluster.walk("a", 0, HostState::running);
  EXPECT_EQ(cluster.find("a")->phase(), Phase::downloading) << "one of two hosts runs";
  cluster.clock.advance(5s);
  cluster.walk("a", 1, HostState::running);
  EXPECT_EQ(cluster.find("a")->phase(), Phase::training);
  cluster.clock.advance(60s);
  cluster.walk("a", 0, HostState::uploading);
  cluster.walk("a", 1, HostState::uploading);
  wire::StateFact done;
  done.state = HostState::finished;
  done.model_uri = "s3://b/a/output/model.tar.gz";
  ASSERT_TRUE(cluster.report("a", 0, done));
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  EXPECT_TRUE(cluster.report("a", 1, HostState::finished)->final);

  const auto job = cluster.find("a");
  EXPECT_EQ(job->state, JobState::completed);
  EXPECT_EQ(job->model_uri, "s3://b/a/output/model.tar.gz");
  EXPECT_EQ(
      cluster.phases("a"),
      (Lines{
          "Starting: Preparing the instances for training.", "Downloading: Downloading input data",
          "Training: Training image download completed. Training in progress.",
          "Uploading: Uploading generated training model", "Completed: Training job completed"}));
  EXPECT_EQ(*job->training_end - *job->training_start, 65s);
  for (size_t i = 1; i < job->transitions.size(); ++i)
    EXPECT_EQ(job->transitions[i - 1].end, job->transitions[i].start);

  // Its agents have some time to exit; then the launcher removes them.
  EXPECT_EQ(cluster.launcher.agents.size(), 2u);
  cluster.clock.advance(31s);
  cluster.run();
  EXPECT_TRUE(cluster.launcher.agents.empty());
}

TEST(Control, RecordsWhenHostsReachedEachState) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  const Instant placed = cluster.clock.now();
  cluster.walk("a", 0, HostState::downloading);
  cluster.clock.advance(5s);
  ASSERT_TRUE(cluster.report("a", 0, HostState::running));
  ASSERT_TRUE(cluster.report("a", 0, HostState::running)) << "only the message changes";
  cluster.clock.advance(60s);
  cluster.walk("a", 0, HostState::finished);
  std::string steps;
  for (const domain::HostStep& step : cluster.find("a")->attempt()->hosts[0].steps)
    steps +=
        std::string(to_string(step.state)) + " " + std::to_string((step.at - placed) / 1s) + "\n";
  EXPECT_EQ(steps,
            "placed 0\npreparing 0\ndownloading 0\nrunning 5\ndraining 65\nuploading 65\n"
            "finished 65\n");
}

TEST(Control, PassesTheTraceContextToProcessesOfAJob) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 2)));
  CreateJob own = TestCluster::job("b");
  own.spec.environment["TRACEPARENT"] = "00-own";
  ASSERT_TRUE(cluster.create(own));
  const auto order = [&](domain::JobNumber job, size_t host) {
    return *wire::decode_order(cluster.launcher.gangs.at({job, 1}).members.at(host).order);
  };
  EXPECT_EQ(order(1, 1).variables.at("TRACEPARENT"),
            domain::trace_parent_of(*cluster.find("a"), 1, 1));
  EXPECT_NE(order(1, 0).variables, order(1, 1).variables);
  EXPECT_FALSE(order(2, 0).variables.contains("TRACEPARENT")) << "the job sets its own";
}

TEST(Control, EndsTheGangOfAFailedHostWithItsReason) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 2)));
  cluster.walk("a", 0, HostState::running);
  cluster.walk("a", 1, HostState::running);
  wire::StateFact exited;
  exited.state = HostState::draining;
  exited.exit_code = 3;
  ASSERT_TRUE(cluster.report("a", 1, exited));
  EXPECT_EQ(cluster.find("a")->stop_cause, domain::StopCause::host_failed)
      << "the other hosts do not wait for its upload";
  cluster.walk("a", 0, HostState::finished);
  wire::StateFact failed;
  failed.state = HostState::failed;
  failed.fault = domain::Fault::algorithm;
  failed.message = "ValueError: no such column";
  ASSERT_TRUE(cluster.report("a", 1, failed));
  EXPECT_EQ(cluster.find("a")->state, JobState::failed);
  EXPECT_EQ(cluster.find("a")->failure_reason,
            "AlgorithmError: ValueError: no such column, exit code: 3 (algo-2)");
  EXPECT_EQ(cluster.phases("a").back(),
            "Failed: AlgorithmError: ValueError: no such column, exit code: 3 (algo-2)");
}

TEST(Control, FailsAJobWithTheNameOfItsLostHost) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 2)));
  cluster.walk("a", 0, HostState::running);
  cluster.launcher.kill({1, 1}, 1);
  cluster.restart();
  cluster.run();
  EXPECT_EQ(cluster.find("a")->attempt()->hosts[1].state, HostState::lost)
      << "the restarted server notices it";
  EXPECT_EQ(cluster.find("a")->state, JobState::active) << "the other host is stopped first";
  cluster.walk("a", 0, HostState::finished);
  EXPECT_EQ(cluster.find("a")->failure_reason,
            "InternalServerError: lost the host's agent on machine box-1 (algo-2)");
}

TEST(Control, NamesOnlyJobsInPendingReasonsThatTheReaderMaySee) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("secret", 1, "ml.m5.2xlarge")));
  ASSERT_TRUE(cluster.create(TestCluster::job("own")));
  const domain::JobKey key{"us-east-1", "own"};
  const auto unseen = *cluster.control->find(key);
  EXPECT_NE(unseen->wait_reason.find("held by another job (8)"), std::string::npos)
      << unseen->wait_reason;
  EXPECT_EQ(unseen->transitions.back().message, unseen->wait_reason);
  std::vector<std::string> requested;
  const auto seen = *cluster.control->find(key, [&](const domain::Job& job) {
    requested.push_back(job.key.name);
    return job.key.name == "secret";
  });
  EXPECT_NE(seen->wait_reason.find("held by training-job/secret (8)"), std::string::npos)
      << seen->wait_reason;
  EXPECT_EQ(requested, Lines(2, "secret")) << "once for vCPU, once for memory";
  EXPECT_EQ(seen->transitions.back().message, seen->wait_reason);
}

TEST(Control, StopsWaitingJobsAtOnceAndActiveOnesInOrder) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 1, "ml.m5.2xlarge")));
  ASSERT_TRUE(cluster.create(TestCluster::job("b")));
  EXPECT_EQ(cluster.find("b")->wait_reason,
            "waits for 2 more vCPU on machine box-1 (needs 2, 0 free): held by training-job/a (8)"
            "; and for 8 more GiB of memory on machine box-1 (needs 8, 0 free): held by "
            "training-job/a (32); starts by 2025-11-21 10:52:00 UTC at the latest");
  EXPECT_EQ(cluster.phases("b"), Lines{"Starting: " + cluster.find("b")->wait_reason});
  EXPECT_EQ(cluster.stop("b")->state, JobState::stopped);
  EXPECT_EQ(cluster.stop("b").error().kind, Kind::conflict);
  EXPECT_EQ(cluster.stop("c").error().kind, Kind::not_found);

  cluster.walk("a", 0, HostState::running);
  EXPECT_EQ(cluster.stop("a")->state, JobState::stopping);
  EXPECT_EQ(cluster.stop("a")->state, JobState::stopping) << "a repetition changes nothing";
  wire::StateFact killed;
  killed.state = HostState::draining;
  killed.exit_code = 143;
  ASSERT_TRUE(cluster.report("a", 0, killed));
  cluster.walk("a", 0, HostState::finished);
  EXPECT_EQ(cluster.find("a")->state, JobState::stopped);
  EXPECT_EQ(cluster.find("a")->failure_reason, "");
  EXPECT_EQ(cluster.phases("a").back(), "Stopped: Training job stopped");
}

TEST(Control, EndsTheGracePeriodOfAStopByAKill) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  cluster.walk("a", 0, HostState::running);
  ASSERT_TRUE(cluster.stop("a"));
  EXPECT_EQ(cluster.find("a")->stop_grace, cluster.settings.stop_grace);
  ASSERT_TRUE(cluster.kill("a"));
  EXPECT_EQ(cluster.find("a")->stop_grace, Duration(0s));
  EXPECT_EQ(cluster.find("a")->stop_cause, StopCause::user);
  EXPECT_EQ(cluster.phases("a").back(), "Stopping: Stopping the training job: by hand");
  ASSERT_TRUE(cluster.stop("a"));
  EXPECT_EQ(cluster.find("a")->stop_grace, Duration(0s)) << "a later stop does not extend it";
  cluster.walk("a", 0, HostState::finished);
  EXPECT_EQ(cluster.find("a")->state, JobState::stopped);
  EXPECT_EQ(cluster.kill("a").error().kind, Kind::conflict);
  EXPECT_EQ(cluster.kill("b").error().kind, Kind::not_found);
}

TEST(Control, ShowsWhoKilledAJob) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  cluster.walk("a", 0, HostState::running);
  ASSERT_TRUE(cluster.kill("a"));
  EXPECT_EQ(cluster.phases("a").back(), "Stopping: Stopping the training job: by hand");
  ASSERT_TRUE(cluster.kill("a")) << "a repetition changes nothing";
  cluster.walk("a", 0, HostState::finished);
  EXPECT_EQ(cluster.phases("a").back(), "Stopped: Training job stopped");
}

TEST(Control, EndsAJobThatIsStoppedBeforeTheLauncherCouldStartIt) {
  TestCluster cluster;
  cluster.launcher.refuses = unavailable("not now");
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  ASSERT_TRUE(cluster.stop("a"));
  EXPECT_EQ(cluster.find("a")->state, JobState::stopped);
}

TEST(Control, CountsTheRuntimeFromTheBeginOfTraining) {
  TestCluster cluster;
  CreateJob job = TestCluster::job("a");
  job.spec.max_runtime_seconds = 60;
  ASSERT_TRUE(cluster.create(job));
  cluster.clock.advance(300s);
  cluster.walk("a", 0, HostState::running);
  cluster.clock.advance(59s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  cluster.clock.advance(1s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::stopping);
  cluster.walk("a", 0, HostState::finished);
  EXPECT_EQ(cluster.find("a")->phase(), Phase::max_runtime_exceeded);
  EXPECT_EQ(cluster.find("a")->state, JobState::stopped);
}

TEST(Control, ShowsThePermanentFailureOfALauncherInTheJob) {
  TestCluster cluster;
  cluster.launcher.refuses = denied("user namespaces are switched off");
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  EXPECT_EQ(
      cluster.find("a")->failure_reason,
      "InternalServerError: the hosts could not be started: user namespaces are switched off");
}

TEST(Control, RetriesATemporaryFailureOfALauncher) {
  TestCluster cluster;
  cluster.launcher.refuses = exhausted("no addresses left");
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  ASSERT_TRUE(cluster.create(TestCluster::job("b")));
  const int before = cluster.launcher.ensured;
  cluster.run();
  EXPECT_GT(cluster.launcher.ensured, before);
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  cluster.clock.advance(cluster.settings.launch_timeout);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::failed);
}

TEST(Control, RejectsDuplicateInvalidAndExcessJobs) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  EXPECT_EQ(cluster.create(TestCluster::job("a")).error().kind, Kind::conflict);
  EXPECT_EQ(cluster.create(TestCluster::job("b", 1, "ml.zz.large")).error().kind, Kind::invalid);
  CreateJob job = TestCluster::job("c");
  job.spec.image = "debian";
  EXPECT_EQ(cluster.create(job).error().kind, Kind::invalid);
  cluster.settings.backlog_commands_max = 0;
  cluster.restart();
  EXPECT_EQ(cluster.create(TestCluster::job("d")).error().kind, Kind::exhausted);
}

TEST(Control, AppliesFactsOnceAndInOrder) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  wire::StateFact fact;
  fact.number = 1;
  fact.state = HostState::preparing;
  EXPECT_EQ(cluster.report("a", 0, fact)->facts_applied, 1u);
  EXPECT_EQ(cluster.report("a", 0, fact)->facts_applied, 1u) << "a repeat is acknowledged";
  fact.number = 3;
  EXPECT_EQ(cluster.report("a", 0, fact).error().kind, Kind::conflict) << "a gap is an error";
  fact.number = 2;
  fact.state = HostState::placed;
  EXPECT_EQ(cluster.report("a", 0, fact)->facts_applied, 2u) << "an impossible fact is counted";
  EXPECT_EQ(cluster.find("a")->attempt()->hosts[0].state, HostState::preparing);
}

TEST(Control, StoresTheAddressOfAHost) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 1)));
  wire::StateFact fact;
  fact.state = HostState::preparing;
  fact.address = "10.1.0.2";
  ASSERT_TRUE(cluster.report("a", 0, fact));
  cluster.walk("a", 0, HostState::running);
  EXPECT_EQ(cluster.find("a")->attempt()->hosts[0].address, "10.1.0.2");
}

TEST(Control, SelectsTheFirstInstancePreferenceWithCapacity) {
  TestCluster cluster;
  auto job = TestCluster::job("a", 1);
  job.spec.preferences = {{"homogeneousCluster", "ml.p4d.24xlarge", 1},
                          {"homogeneousCluster", "ml.m5.large", 2}};
  job.spec.groups = {job.spec.preferences[0]};
  ASSERT_TRUE(cluster.create(job));
  const auto placed = cluster.find("a");
  ASSERT_EQ(placed->state, JobState::active) << placed->wait_reason;
  EXPECT_EQ(placed->selected, 1u);
  EXPECT_EQ(placed->spec.instance_type(0), "ml.m5.large");
  EXPECT_EQ(placed->attempt()->hosts.size(), 2u);
  const auto order = wire::decode_order(cluster.launcher.gangs.at({1, 1}).members[1].order);
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->spec.instance_type(1), "ml.m5.large");
  test::Replay replay;
  ASSERT_TRUE(replay.run(*cluster.ledger));
  EXPECT_EQ(dump(to_json(*cluster.ledger->find_job(1)), 1), dump(to_json(replay.jobs.at(1)), 1));
  EXPECT_EQ(cluster.ledger->find_job(1)->spec.hosts(), 2u) << "as read from the ledger";
}

TEST(Control, NamesAHostThatSeemsToHangInTheStatus) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  const auto say = [&](uint64_t number, const std::string& message) {
    wire::StateFact fact;
    fact.number = number;
    fact.state = HostState::running;
    fact.message = message;
    EXPECT_TRUE(cluster.report("a", 0, fact));
    return cluster.find("a")->transitions.back().message;
  };
  const std::string usual = "Training image download completed. Training in progress.";
  EXPECT_EQ(say(1, "whatever the agent calls it"), usual);
  EXPECT_EQ(say(2, "algo-1 seems to hang"), usual + " algo-1 seems to hang");
  EXPECT_EQ(cluster.find("a")->phase(), domain::Phase::training);
  EXPECT_EQ(say(3, ""), usual);
}

TEST(Control, ShowsTheProgressOfAHost) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 2)));
  wire::StateFact word;
  word.state = HostState::downloading;
  word.message = "Downloading the training image: 1 of 2 MiB";
  cluster.walk("a", 0, HostState::downloading);
  ASSERT_TRUE(cluster.report("a", 0, word));
  cluster.walk("a", 1, HostState::downloading);
  EXPECT_EQ(cluster.phases("a").back(), "Downloading: " + word.message)
      << "the start of another host does not replace it";
  cluster.walk("a", 0, HostState::running);
  cluster.walk("a", 1, HostState::running);
  ASSERT_TRUE(cluster.report("a", 0, word)) << "a late message is counted";
  EXPECT_EQ(cluster.phases("a").back(),
            "Training: Training image download completed. Training in progress.");
}

TEST(Control, NotesTheReplacementOfAnImage) {
  TestCluster cluster;
  domain::Image stand_in;
  stand_in.note = "The job runs on this machine's own system.";
  cluster.settings.images["pytorch-training"] = stand_in;
  cluster.restart();
  CreateJob job = TestCluster::job("a");
  job.spec.image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.0";
  ASSERT_TRUE(cluster.create(std::move(job)));
  EXPECT_EQ(cluster.find("a")->note, stand_in.note);
}

TEST(Control, MergesAndRemovesTags) {
  TestCluster cluster;
  CreateJob job = TestCluster::job("a");
  job.tags = {{"team", "red"}, {"cost", "1"}};
  ASSERT_TRUE(cluster.create(job));
  const std::string arn = job_arn("123456789012", job.key);
  std::vector<domain::Tag> all;
  cluster.control->set_tags(arn, {{"team", "blue"}}, {"cost"}, [&](auto answer) { all = *answer; });
  cluster.run();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].value, "blue");
  EXPECT_EQ(cluster.control->tags(arn)->size(), 1u);
  Kind kind{};
  cluster.control->set_tags(arn, std::vector<domain::Tag>(1, {"x", ""}), {},
                            [&](auto answer) { all = *answer; });
  std::vector<domain::Tag> many;
  for (int i = 0; i < 50; ++i) many.push_back({std::to_string(i), ""});
  cluster.control->set_tags(arn, many, {}, [&](auto answer) { kind = answer.error().kind; });
  cluster.run();
  EXPECT_EQ(all.size(), 2u);
  EXPECT_EQ(kind, Kind::invalid);
}

TEST(Control, RemovesOrphanAgentsAtTheStart) {
  TestCluster cluster;
  cluster.launcher.agents.push_back({{99, 1}, "old", 0, true});
  ASSERT_TRUE(cluster.create(TestCluster::job("a")));
  ASSERT_EQ(cluster.launcher.agents.size(), 1u);
  EXPECT_EQ(cluster.launcher.agents[0].attempt, (AttemptId{1, 1}));
}

// They hold it until they are removed, even after a restart.
TEST(Control, LetsRemainingAgentsOfAFinishedJobHoldTheirMachine) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 1, "ml.m5.2xlarge")));
  cluster.walk("a", 0, HostState::finished);
  cluster.restart();
  ASSERT_TRUE(cluster.create(TestCluster::job("b", 1, "ml.m5.2xlarge")));
  EXPECT_EQ(cluster.find("b")->state, JobState::waiting);
  EXPECT_EQ(cluster.find("b")->wait_reason,
            "waits for 8 more vCPU on machine box-1 (needs 8, 0 free): held by training-job/a (8)"
            "; and for 32 more GiB of memory on machine box-1 (needs 32, 0 free): held by "
            "training-job/a (32)");
  cluster.launcher.kill({1, 1}, 0);
  cluster.run();
  EXPECT_EQ(cluster.find("b")->state, JobState::active);
}

TEST(Control, StartsAJobAfterAddingTheMachineOfItsPendingReason) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.create(TestCluster::job("a", 1, "ml.m5.12xlarge")));
  EXPECT_EQ(cluster.find("a")->wait_reason,
            "needs 48 vCPU on one machine, the largest has 8: add 1 machine with at least 48 vCPU "
            "and 192 GiB of memory");
  cluster.launcher.the_machines.push_back({"box-2", 48, int64_t{192} << 30, 0});
  cluster.run();
  EXPECT_EQ(cluster.find("a")->attempt()->hosts[0].machine, "box-2");
  EXPECT_EQ(cluster.find("a")->wait_reason, "");
}

TEST(Control, RebuildsTheTablesByAReplayOfTheLedger) {
  TestCluster cluster;
  CreateJob first = TestCluster::job("a", 2);
  first.tags = {{"k", "v"}};
  ASSERT_TRUE(cluster.create(first));
  ASSERT_TRUE(cluster.create(TestCluster::job("b", 1, "ml.m5.2xlarge")));
  cluster.walk("a", 0, HostState::running);
  ASSERT_TRUE(cluster.stop("a"));
  cluster.walk("a", 0, HostState::finished);
  cluster.launcher.kill({1, 1}, 1);
  cluster.run();
  cluster.clock.advance(60s);
  cluster.run();
  cluster.walk("b", 0, HostState::running);
  cluster.clock.advance(86400s);
  cluster.run();

  test::Replay replay;
  ASSERT_TRUE(replay.run(*cluster.ledger)) << "only commands with an effect are stored";
  ASSERT_EQ(replay.jobs.size(), 2u);
  for (const auto& [number, job] : replay.jobs)
    EXPECT_EQ(dump(to_json(*cluster.ledger->find_job(number)), 1), dump(to_json(job), 1));
  EXPECT_EQ(replay.tags.size(), 1u);
  EXPECT_EQ(replay.jobs.at(1).state, JobState::stopped) << "the lost host had not run yet";
  EXPECT_EQ(replay.jobs.at(2).stop_cause, domain::StopCause::max_runtime);
}

// A waiting job would otherwise wait for the removal and the rest after it.
TEST(Control, StartsBeforeItRemovesAndRestsAfterAFailedStart) {
  TestCluster cluster;
  Lines calls;
  cluster.launcher.while_called = [&](const std::string& call) {
    calls.push_back(call);
    cluster.clock.advance(1s);
  };
  cluster.control->create_job(TestCluster::job("a"), [](const auto&) {});
  cluster.control->commit_step();
  cluster.control->reconcile_step();
  cluster.control->commit_step();
  cluster.launcher.agents.push_back({{99, 1}, "old", 0, true});
  EXPECT_EQ(cluster.control->reconcile_step().count(), 0)
      << "only successful starts and removals took time";
  EXPECT_EQ(calls, (Lines{"ensure", "remove"}));
  // A failed start would otherwise be retried at once, forever.
  cluster.control->create_job(TestCluster::job("b"), [](const auto&) {});
  cluster.control->commit_step();
  cluster.control->reconcile_step();
  cluster.control->commit_step();
  cluster.launcher.refuses = unavailable("not now");
  calls.clear();
  EXPECT_EQ(cluster.control->reconcile_step(), 1s);
  EXPECT_EQ(calls, Lines{"ensure"});
}

}  // namespace
}  // namespace trainyard::control
