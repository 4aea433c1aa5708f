// Tests jobs of queues: their environments, dependencies, retries and ends.
#include "control/testing/test_batch.hpp"

#include "batch/catalog.hpp"

namespace trainyard::control {
namespace {

using batch::ResourceChange;
using domain::Cancellation;
using domain::HostState;
using domain::JobState;
using test::BatchCluster;
using test::kRegion;

// Returns how each attempt ended, with AWS's texts.
std::vector<std::string> ends(const domain::Job& job) {
  std::vector<std::string> reasons;
  for (const auto& attempt : job.attempts)
    reasons.push_back(batch::end_of(job, attempt).status_reason);
  return reasons;
}

TEST(Batch, RunsAJobInTheFirstEnvironmentWithFreeCapacity) {
  BatchCluster cluster;
  cluster.add_environment("more", 2);
  cluster.add_queue("both", {"box", "more"}, 1);
  ASSERT_TRUE(cluster.create(cluster.batch_job("a", 4, "both")));
  ASSERT_TRUE(cluster.create(cluster.batch_job("b", 2, "both")));
  ASSERT_TRUE(cluster.create(cluster.batch_job("c", 1, "both")));
  ASSERT_TRUE(cluster.create(cluster.batch_job("d", 9, "both")));
  EXPECT_EQ(cluster.find("a")->attempt()->environment, "box");
  EXPECT_EQ(cluster.find("b")->attempt()->environment, "more");
  EXPECT_EQ(cluster.find("c")->wait_reason,
            "waits for 1 more vCPU of compute environment box (needs 1, 4 of its 4 are used); "
            "waits for 1 more vCPU of "
            "compute environment more (needs 1, 2 of its 2 are used)");
  EXPECT_EQ(cluster.status("c"), "RUNNABLE");
  EXPECT_NE(cluster.find("d")->wait_reason.find("has at most 4: raise its maxvCpus"),
            std::string::npos);
  cluster.exit("a", 0);
  EXPECT_EQ(cluster.status("a"), "SUCCEEDED");
  EXPECT_EQ(cluster.find("c")->attempt()->environment, "box");
}

TEST(Batch, StartsJobsOfQueuesWithHigherPriorityFirst) {
  BatchCluster cluster;
  cluster.add_queue("urgent", {"box"}, 10);
  ASSERT_TRUE(cluster.create(cluster.batch_job("running", 4)));
  ASSERT_TRUE(cluster.create(cluster.batch_job("early", 4)));
  ASSERT_TRUE(cluster.create(cluster.batch_job("late", 4, "urgent")));
  cluster.exit("running", 0);
  EXPECT_EQ(cluster.status("late"), "STARTING");
  EXPECT_EQ(cluster.status("early"), "RUNNABLE");
}

TEST(Batch, MakesAJobWaitForItsDependencies) {
  BatchCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.batch_job("first")));
  cluster.exit("first", 0);
  cluster.clock.advance(1h);
  cluster.run();
  ASSERT_TRUE(cluster.create(cluster.batch_job("second")));
  ASSERT_TRUE(cluster.create(cluster.batch_job("third", 1, "q", {"first", "second"})));
  EXPECT_EQ(cluster.status("third"), "PENDING");
  EXPECT_EQ(cluster.find("third")->awaits.size(), 1u)
      << "the first has ended, although it is not in memory";
  cluster.restart();
  cluster.run();
  cluster.exit("second", 0);
  EXPECT_EQ(cluster.status("third"), "STARTING");
  EXPECT_EQ(cluster.create(cluster.batch_job("fourth", 1, "q", {"nobody"})).error().message,
            "the job nobody that it depends on does not exist");
}

TEST(Batch, FailsTheDependentsOfAFailedJob) {
  BatchCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.batch_job("first")));
  ASSERT_TRUE(cluster.create(cluster.batch_job("second", 1, "q", {"first"})));
  ASSERT_TRUE(cluster.create(cluster.batch_job("third", 1, "q", {"second"})));
  cluster.exit("first", 1);
  for (const char* id : {"second", "third"}) {
    EXPECT_EQ(cluster.status(id), "FAILED") << id;
    EXPECT_EQ(batch::status_reason(*cluster.find(id)), "Dependent Job failed");
  }
}

TEST(Batch, RetriesAFailureAsOftenAsRequestedAndRecordsEachAttempt) {
  BatchCluster cluster;
  CreateJob job = cluster.batch_job("a");
  job.spec.retry.attempts_max = 3;
  job.spec.retry.rules = {{"", "", "9", false}};
  ASSERT_TRUE(cluster.create(job));
  cluster.exit("a", 7);
  ASSERT_EQ(cluster.find("a")->attempts.size(), 2u);
  EXPECT_EQ(cluster.find("a")->attempts[0].exit_code, 7);
  cluster.exit("a", 9);
  EXPECT_EQ(cluster.status("a"), "FAILED");
  ASSERT_EQ(cluster.find("a")->attempts.size(), 2u) << "by the rule exit code 9 is final";
  EXPECT_EQ(cluster.find("a")->attempts[1].exit_code, 9);
  EXPECT_EQ(batch::status_reason(*cluster.find("a")), "Essential container in task exited");
}

TEST(Batch, AppliesATimeoutToEachAttemptAndDoesNotRetryIt) {
  BatchCluster cluster;
  CreateJob job = cluster.batch_job("a");
  job.spec.max_runtime_seconds = 60;
  job.spec.retry.attempts_max = 3;
  ASSERT_TRUE(cluster.create(job));
  cluster.walk("a", 0, HostState::running);
  cluster.clock.advance(50s);
  cluster.exit("a", 1);
  cluster.walk("a", 0, HostState::running);
  cluster.clock.advance(50s);
  cluster.run();
  EXPECT_EQ(cluster.status("a"), "RUNNING") << "each attempt has the whole time";
  cluster.clock.advance(11s);
  cluster.run();
  EXPECT_EQ(cluster.find("a")->state, JobState::stopping);
  cluster.exit("a", 143);
  EXPECT_EQ(cluster.status("a"), "FAILED");
  EXPECT_EQ(cluster.find("a")->attempts.size(), 2u);
  EXPECT_EQ(batch::status_reason(*cluster.find("a")), "Job attempt duration exceeded timeout");
  EXPECT_EQ(ends(*cluster.find("a")),
            (std::vector<std::string>{"Essential container in task exited",
                                      "Job attempt duration exceeded timeout"}));
}

TEST(Batch, RetriesAnInterruptionUnlessARuleForItsStatusReasonIsExit) {
  BatchCluster cluster;
  const auto interrupted = [&](const std::string& id, std::vector<domain::RetryRule> rules) {
    CreateJob job = cluster.batch_job(id);
    job.spec.retry.rules = std::move(rules);
    EXPECT_TRUE(cluster.create(job));
    cluster.walk(id, 0, HostState::running);
    cluster.control->interrupt_job({kRegion, id}, {}, [](auto answer) { EXPECT_TRUE(answer); });
    cluster.run();
    wire::StateFact last;
    last.state = HostState::finished;
    last.stopped = domain::StopCause::interrupted;
    EXPECT_TRUE(cluster.report(id, 0, last));
    const auto ended = cluster.find(id);
    EXPECT_TRUE(domain::matches("Host EC2 (instance i-*", ends(*ended).front()));
    return ended->state;
  };
  EXPECT_EQ(interrupted("none", {}), JobState::waiting);
  EXPECT_EQ(interrupted("reason", {{"", "*", "", false}}), JobState::waiting);
  EXPECT_EQ(interrupted("retry", {{"Host EC2*", "", "", true}, {"*", "", "", false}}),
            JobState::waiting);
  EXPECT_EQ(interrupted("exit", {{"Host EC2*", "", "", false}}), JobState::failed);
  EXPECT_EQ(batch::status_reason(*cluster.find("exit")), ends(*cluster.find("exit")).front());
}

TEST(Batch, CancelsOnlyWaitingJobsAndTerminatesAll) {
  BatchCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.batch_job("runs", 4)));
  ASSERT_TRUE(cluster.create(cluster.batch_job("waits", 4)));
  EXPECT_TRUE(cluster.cancel("runs", Cancellation::cancelled, "no"));
  EXPECT_EQ(cluster.find("runs")->state, JobState::active);
  EXPECT_TRUE(cluster.cancel("waits", Cancellation::cancelled, "no need"));
  EXPECT_EQ(cluster.status("waits"), "FAILED");
  EXPECT_EQ(batch::status_reason(*cluster.find("waits")), "no need");
  EXPECT_TRUE(cluster.cancel("runs", Cancellation::terminated, "enough"));
  EXPECT_EQ(cluster.find("runs")->state, JobState::stopping);
  cluster.exit("runs", 143);
  EXPECT_EQ(cluster.status("runs"), "FAILED");
  EXPECT_EQ(cluster.find("runs")->cancellation, Cancellation::terminated);
  EXPECT_EQ(ends(*cluster.find("runs")), std::vector<std::string>{"enough"});
  EXPECT_TRUE(cluster.cancel("runs", Cancellation::terminated, "again"))
      << "it has ended, which is not an error";
  EXPECT_EQ(cluster.find("runs")->cancellation_reason, "enough");
}

TEST(Batch, RejectsJobsOfDisabledQueuesAndEndsJobsOfDeletedQueues) {
  BatchCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.batch_job("a")));
  auto queue = cluster.queue_of("q", {"box"}, 1);
  EXPECT_FALSE(cluster.change(ResourceChange::remove, queue));
  queue.enabled = false;
  ASSERT_TRUE(cluster.change(ResourceChange::update, queue));
  EXPECT_EQ(cluster.create(cluster.batch_job("b")).error().message,
            "the job queue q is disabled and does not accept jobs");
  EXPECT_EQ(cluster.find("a")->state, JobState::active);
  ASSERT_TRUE(cluster.change(ResourceChange::remove, queue));
  EXPECT_EQ(cluster.find("a")->state, JobState::stopping);
  EXPECT_EQ(cluster.find("a")->cancellation_reason, "the job queue q was deleted");
}

TEST(Batch, KeepsQueuesEnvironmentsAndDefinitionsOverARestart) {
  BatchCluster cluster;
  batch::JobDefinition definition;
  definition.key = {kRegion, "train"};
  for (uint32_t revision = 1; revision <= 3; ++revision) {
    const auto made = cluster.change(ResourceChange::create, definition);
    ASSERT_TRUE(made);
    EXPECT_EQ(std::get<batch::JobDefinition>(*made).revision, revision);
  }
  definition.revision = 2;
  definition.active = false;
  ASSERT_TRUE(cluster.change(ResourceChange::update, definition));
  cluster.restart();
  EXPECT_TRUE(cluster.control->batch_catalog()->queue({kRegion, "q"}));
  EXPECT_EQ(cluster.control->batch_catalog()->environment({kRegion, "box"})->cpus_max, 4);
  ledger::DefinitionQuery query;
  query.region = kRegion;
  query.active = true;
  const auto found = cluster.control->definitions(query);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(found->front().revision, 3u);
  EXPECT_EQ(found->back().revision, 1u);
}

TEST(Batch, SetsThePathInTheOrderAndTheNamesOfLogs) {
  BatchCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.batch_job("a")));
  const auto job = cluster.find("a");
  const auto streams = cluster.logs.streams(kRegion, "/aws/batch/job", "train/default/");
  ASSERT_TRUE(streams);
  ASSERT_EQ(streams->size(), 1u);
  EXPECT_EQ(streams->front().name, reconcile::log_stream_of(*job, *job->attempt(), 0));
  EXPECT_EQ(job_arn(*job), "arn:aws:batch:us-east-1:123456789012:job/a");
}

// A trace interrupts only hosts of environments with spot machines.
TEST(Batch, CountsAReclaimedSpotMachineAsAFailure) {
  BatchCluster cluster;
  cluster.settings.spot.trace = {{cluster.clock.now() + 60s, "", "", "", 9, 1}};
  cluster.restart();
  cluster.add_environment("spot", 4, true);
  cluster.add_queue("cheap", {"spot"}, 1);
  for (const auto& [name, queue, attempts] :
       {std::tuple{"once", "cheap", 1u}, {"twice", "cheap", 2u}, {"sure", "q", 1u}}) {
    CreateJob job = cluster.batch_job(name, 1, queue);
    job.spec.retry.attempts_max = attempts;
    ASSERT_TRUE(cluster.create(std::move(job)));
    cluster.walk(name, 0, HostState::running);
  }
  cluster.clock.advance(61s);
  cluster.run();
  for (const char* name : {"once", "twice"}) {
    EXPECT_EQ(cluster.find(name)->attempt()->interruption,
              "algo-1: spot capacity was reclaimed (line 1 of the trace)");
    wire::StateFact fact;
    fact.state = HostState::finished;
    fact.exit_code = 143;
    fact.stopped = domain::StopCause::interrupted;
    ASSERT_TRUE(cluster.report(name, 0, fact));
    const auto job = cluster.find(name);
    cluster.launcher.kill({job->number, 1}, 0);
  }
  cluster.run();
  EXPECT_EQ(cluster.status("sure"), "RUNNING");
  EXPECT_EQ(cluster.status("once"), "FAILED") << "it requested one attempt";
  EXPECT_TRUE(batch::status_reason(*cluster.find("once")).starts_with("Host EC2 (instance i-"));
  ASSERT_EQ(cluster.find("twice")->attempts.size(), 2u);
  const auto twice = cluster.find("twice");
  EXPECT_TRUE(
      batch::end_of(*twice, twice->attempts[0]).status_reason.starts_with("Host EC2 (instance i-"));
  cluster.exit("twice", 0);
  EXPECT_EQ(cluster.status("twice"), "SUCCEEDED");
}

TEST(Batch, RebuildsJobsByAReplayOfTheLedger) {
  BatchCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.batch_job("a")));
  ASSERT_TRUE(cluster.create(cluster.batch_job("b", 1, "q", {"a"})));
  ASSERT_TRUE(cluster.create(cluster.batch_job("c", 9)));
  ASSERT_TRUE(cluster.cancel("c", Cancellation::cancelled, "too large"));
  cluster.exit("a", 0);
  test::Replay replay;
  ASSERT_TRUE(replay.run(*cluster.ledger));
  for (const char* id : {"a", "b", "c"}) {
    const auto kept = cluster.ledger->find_job({kRegion, id});
    ASSERT_TRUE(kept);
    EXPECT_EQ(to_json(replay.jobs.at(kept->number)), to_json(*kept)) << id;
  }
  EXPECT_TRUE(replay.catalog.queue({kRegion, "q"}));
}

TEST(Batch, GivesJobsWithoutATimeoutNoLimitOfRunTime) {
  BatchCluster cluster;
  CreateJob limited = cluster.batch_job("a");
  limited.spec.max_runtime_seconds = 60;
  ASSERT_TRUE(cluster.create(limited));
  ASSERT_TRUE(cluster.create(cluster.batch_job("b")));
  std::map<std::string, Duration> limits;
  for (const auto& [attempt, gang] : cluster.launcher.gangs)
    limits[std::to_string(attempt.job)] = gang.run_time_max;
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_GT(limits.begin()->second, 60s) << "with the time to stop";
  EXPECT_EQ(limits.rbegin()->second, Duration{});
}

}  // namespace
}  // namespace trainyard::control
