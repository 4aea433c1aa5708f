// Tests jobs of queues: where they wait, what they depend on, when they are retried.
#include "control/test_batch.hpp"

#include "batch/catalog.hpp"

namespace trainyard::control {
namespace {

using batch::ResourceChange;
using domain::HostState;
using domain::JobState;
using domain::Withdrawn;
using test::BatchCluster;
using test::kRegion;

// How each attempt ended, in the words of AWS.
std::vector<std::string> ends(const domain::Job& job) {
  std::vector<std::string> words;
  for (const auto& attempt : job.attempts)
    words.push_back(batch::end_of(job, attempt).status_reason);
  return words;
}

TEST(Batch, AJobRunsInTheFirstEnvironmentOfItsQueueWithRoom) {
  BatchCluster yard;
  yard.add_environment("more", 2);
  yard.add_queue("both", {"box", "more"}, 1);
  ASSERT_TRUE(yard.create(yard.batch_job("a", 4, "both")));
  ASSERT_TRUE(yard.create(yard.batch_job("b", 2, "both")));
  ASSERT_TRUE(yard.create(yard.batch_job("c", 1, "both")));
  ASSERT_TRUE(yard.create(yard.batch_job("d", 9, "both")));
  EXPECT_EQ(yard.find("a")->attempt()->environment, "box");
  EXPECT_EQ(yard.find("b")->attempt()->environment, "more");
  EXPECT_EQ(yard.find("c")->wait_reason,
            "waits for 1 more vCPU of compute environment box (needs 1, 4 of its 4 are used); "
            "waits for 1 "
            "more vCPU of "
            "compute environment more (needs 1, 2 of its 2 are used)");
  EXPECT_EQ(yard.status("c"), "RUNNABLE");
  EXPECT_NE(yard.find("d")->wait_reason.find("has at most 4: raise its maxvCpus"),
            std::string::npos);
  yard.exit("a", 0);
  EXPECT_EQ(yard.status("a"), "SUCCEEDED");
  EXPECT_EQ(yard.find("c")->attempt()->environment, "box");
}

TEST(Batch, TheQueueOfTheHigherPriorityGoesFirst) {
  BatchCluster yard;
  yard.add_queue("urgent", {"box"}, 10);
  ASSERT_TRUE(yard.create(yard.batch_job("running", 4)));
  ASSERT_TRUE(yard.create(yard.batch_job("early", 4)));
  ASSERT_TRUE(yard.create(yard.batch_job("late", 4, "urgent")));
  yard.exit("running", 0);
  EXPECT_EQ(yard.status("late"), "STARTING");
  EXPECT_EQ(yard.status("early"), "RUNNABLE");
}

TEST(Batch, AJobWaitsForThoseThatItDependsOn) {
  BatchCluster yard;
  ASSERT_TRUE(yard.create(yard.batch_job("first")));
  yard.exit("first", 0);
  yard.clock.advance(1h);
  yard.run();
  ASSERT_TRUE(yard.create(yard.batch_job("second")));
  ASSERT_TRUE(yard.create(yard.batch_job("third", 1, "q", {"first", "second"})));
  EXPECT_EQ(yard.status("third"), "PENDING");
  EXPECT_EQ(yard.find("third")->awaits.size(), 1u)
      << "the first is over, though nobody has it in memory";
  yard.restart();
  yard.run();
  yard.exit("second", 0);
  EXPECT_EQ(yard.status("third"), "STARTING");
  EXPECT_EQ(yard.create(yard.batch_job("fourth", 1, "q", {"nobody"})).error().message,
            "the job nobody that it depends on does not exist");
}

TEST(Batch, WhoseDependencyFailsFailsToo) {
  BatchCluster yard;
  ASSERT_TRUE(yard.create(yard.batch_job("first")));
  ASSERT_TRUE(yard.create(yard.batch_job("second", 1, "q", {"first"})));
  ASSERT_TRUE(yard.create(yard.batch_job("third", 1, "q", {"second"})));
  yard.exit("first", 1);
  for (const char* id : {"second", "third"}) {
    EXPECT_EQ(yard.status(id), "FAILED") << id;
    EXPECT_EQ(batch::status_reason(*yard.find(id)), "Dependent Job failed");
  }
}

TEST(Batch, AFailureIsTriedAgainAsOftenAsAskedAndEachAttemptIsKept) {
  BatchCluster yard;
  CreateJob job = yard.batch_job("a");
  job.spec.retry.attempts_max = 3;
  job.spec.retry.rules = {{"", "", "9", false}};
  ASSERT_TRUE(yard.create(job));
  yard.exit("a", 7);
  ASSERT_EQ(yard.find("a")->attempts.size(), 2u);
  EXPECT_EQ(yard.find("a")->attempts[0].exit_code, 7);
  yard.exit("a", 9);
  EXPECT_EQ(yard.status("a"), "FAILED");
  ASSERT_EQ(yard.find("a")->attempts.size(), 2u) << "the rule says that 9 is final";
  EXPECT_EQ(yard.find("a")->attempts[1].exit_code, 9);
  EXPECT_EQ(batch::status_reason(*yard.find("a")), "Essential container in task exited");
}

TEST(Batch, ATimeoutIsOfEachAttemptAndNotTriedAgain) {
  BatchCluster yard;
  CreateJob job = yard.batch_job("a");
  job.spec.max_runtime_seconds = 60;
  job.spec.retry.attempts_max = 3;
  ASSERT_TRUE(yard.create(job));
  yard.walk("a", 0, HostState::running);
  yard.clock.advance(50s);
  yard.exit("a", 1);
  yard.walk("a", 0, HostState::running);
  yard.clock.advance(50s);
  yard.run();
  EXPECT_EQ(yard.status("a"), "RUNNING") << "the clock has begun anew";
  yard.clock.advance(11s);
  yard.run();
  EXPECT_EQ(yard.find("a")->state, JobState::stopping);
  yard.exit("a", 143);
  EXPECT_EQ(yard.status("a"), "FAILED");
  EXPECT_EQ(yard.find("a")->attempts.size(), 2u);
  EXPECT_EQ(batch::status_reason(*yard.find("a")), "Job attempt duration exceeded timeout");
  EXPECT_EQ(ends(*yard.find("a")),
            (std::vector<std::string>{"Essential container in task exited",
                                      "Job attempt duration exceeded timeout"}));
}

TEST(Batch, AnInterruptionIsFollowedByAnotherAttemptUnlessARuleOfItsStatusReasonSaysExit) {
  BatchCluster yard;
  const auto interrupted = [&](const std::string& id, std::vector<domain::RetryRule> rules) {
    CreateJob job = yard.batch_job(id);
    job.spec.retry.rules = std::move(rules);
    EXPECT_TRUE(yard.create(job));
    yard.walk(id, 0, HostState::running);
    yard.control->interrupt_job({kRegion, id}, {}, [](auto answer) { EXPECT_TRUE(answer); });
    yard.run();
    wire::StateFact last;
    last.state = HostState::finished;
    last.stopped = domain::StopCause::interrupted;
    EXPECT_TRUE(yard.report(id, 0, last));
    const auto ended = yard.find(id);
    EXPECT_TRUE(domain::matches("Host EC2 (instance i-*", ends(*ended).front()));
    return ended->state;
  };
  EXPECT_EQ(interrupted("none", {}), JobState::waiting);
  EXPECT_EQ(interrupted("reason", {{"", "*", "", false}}), JobState::waiting);
  EXPECT_EQ(interrupted("retry", {{"Host EC2*", "", "", true}, {"*", "", "", false}}),
            JobState::waiting);
  EXPECT_EQ(interrupted("exit", {{"Host EC2*", "", "", false}}), JobState::failed);
  EXPECT_EQ(batch::status_reason(*yard.find("exit")), ends(*yard.find("exit")).front());
}

TEST(Batch, CancelIsForWaitingJobsAndTerminateForAll) {
  BatchCluster yard;
  ASSERT_TRUE(yard.create(yard.batch_job("runs", 4)));
  ASSERT_TRUE(yard.create(yard.batch_job("waits", 4)));
  EXPECT_TRUE(yard.withdraw("runs", Withdrawn::cancelled, "no"));
  EXPECT_EQ(yard.find("runs")->state, JobState::active);
  EXPECT_TRUE(yard.withdraw("waits", Withdrawn::cancelled, "no need"));
  EXPECT_EQ(yard.status("waits"), "FAILED");
  EXPECT_EQ(batch::status_reason(*yard.find("waits")), "no need");
  EXPECT_TRUE(yard.withdraw("runs", Withdrawn::terminated, "enough"));
  EXPECT_EQ(yard.find("runs")->state, JobState::stopping);
  yard.exit("runs", 143);
  EXPECT_EQ(yard.status("runs"), "FAILED");
  EXPECT_EQ(yard.find("runs")->withdrawn, Withdrawn::terminated);
  EXPECT_EQ(ends(*yard.find("runs")), std::vector<std::string>{"enough"});
  EXPECT_TRUE(yard.withdraw("runs", Withdrawn::terminated, "again"))
      << "it is over, and that is no error";
  EXPECT_EQ(yard.find("runs")->withdrawn_reason, "enough");
}

TEST(Batch, AQueueThatIsDisabledTakesNoneAndOneThatIsDeletedEndsItsJobs) {
  BatchCluster yard;
  ASSERT_TRUE(yard.create(yard.batch_job("a")));
  auto queue = yard.queue_of("q", {"box"}, 1);
  EXPECT_FALSE(yard.change(ResourceChange::remove, queue));
  queue.enabled = false;
  ASSERT_TRUE(yard.change(ResourceChange::update, queue));
  EXPECT_EQ(yard.create(yard.batch_job("b")).error().message,
            "the job queue q is disabled and does not accept jobs");
  EXPECT_EQ(yard.find("a")->state, JobState::active);
  ASSERT_TRUE(yard.change(ResourceChange::remove, queue));
  EXPECT_EQ(yard.find("a")->state, JobState::stopping);
  EXPECT_EQ(yard.find("a")->withdrawn_reason, "the job queue q was deleted");
}

TEST(Batch, QueuesEnvironmentsAndDefinitionsOutliveTheServer) {
  BatchCluster yard;
  batch::JobDefinition definition;
  definition.key = {kRegion, "train"};
  for (uint32_t revision = 1; revision <= 3; ++revision) {
    const auto made = yard.change(ResourceChange::create, definition);
    ASSERT_TRUE(made);
    EXPECT_EQ(std::get<batch::JobDefinition>(*made).revision, revision);
  }
  definition.revision = 2;
  definition.active = false;
  ASSERT_TRUE(yard.change(ResourceChange::update, definition));
  yard.restart();
  EXPECT_TRUE(yard.control->batch_catalog()->queue({kRegion, "q"}));
  EXPECT_EQ(yard.control->batch_catalog()->environment({kRegion, "box"})->cpus_max, 4);
  ledger::DefinitionQuery query;
  query.region = kRegion;
  query.active = true;
  const auto found = yard.control->definitions(query);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(found->front().revision, 3u);
  EXPECT_EQ(found->back().revision, 1u);
}

TEST(Batch, ItsOrderNamesItsPlaceAndItsLogsAreBatchs) {
  BatchCluster yard;
  ASSERT_TRUE(yard.create(yard.batch_job("a")));
  const auto job = yard.find("a");
  const auto streams = yard.logs.streams(kRegion, "/aws/batch/job", "train/default/");
  ASSERT_TRUE(streams);
  ASSERT_EQ(streams->size(), 1u);
  EXPECT_EQ(streams->front().name, reconcile::log_stream_of(*job, *job->attempt(), 0));
  EXPECT_EQ(job_arn(*job), "arn:aws:batch:us-east-1:123456789012:job/a");
}

// A trace takes the machines of an environment of spot machines away, and of no other.
TEST(Batch, SpotMachinesAreTakenBackAndThatCountsAsAFailure) {
  BatchCluster yard;
  yard.settings.spot.trace = {{yard.clock.now() + 60s, "", "", "", 9, 1}};
  yard.restart();
  yard.add_environment("spot", 4, true);
  yard.add_queue("cheap", {"spot"}, 1);
  for (const auto& [name, queue, attempts] :
       {std::tuple{"once", "cheap", 1u}, {"twice", "cheap", 2u}, {"sure", "q", 1u}}) {
    CreateJob job = yard.batch_job(name, 1, queue);
    job.spec.retry.attempts_max = attempts;
    ASSERT_TRUE(yard.create(std::move(job)));
    yard.walk(name, 0, HostState::running);
  }
  yard.clock.advance(61s);
  yard.run();
  for (const char* name : {"once", "twice"}) {
    EXPECT_EQ(yard.find(name)->attempt()->interruption,
              "algo-1: spot capacity was reclaimed (line 1 of the trace)");
    wire::StateFact told;
    told.state = HostState::finished;
    told.exit_code = 143;
    told.stopped = domain::StopCause::interrupted;
    ASSERT_TRUE(yard.report(name, 0, told));
    const auto job = yard.find(name);
    yard.launcher.kill({job->number, 1}, 0);
  }
  yard.run();
  EXPECT_EQ(yard.status("sure"), "RUNNING");
  EXPECT_EQ(yard.status("once"), "FAILED") << "it asked for one attempt";
  EXPECT_TRUE(batch::status_reason(*yard.find("once")).starts_with("Host EC2 (instance i-"));
  ASSERT_EQ(yard.find("twice")->attempts.size(), 2u);
  const auto twice = yard.find("twice");
  EXPECT_TRUE(
      batch::end_of(*twice, twice->attempts[0]).status_reason.starts_with("Host EC2 (instance i-"));
  yard.exit("twice", 0);
  EXPECT_EQ(yard.status("twice"), "SUCCEEDED");
}

// As the ledger keeps them: every kind of command that Batch has brought.
TEST(Batch, ReplayRebuildsTheJobs) {
  BatchCluster yard;
  ASSERT_TRUE(yard.create(yard.batch_job("a")));
  ASSERT_TRUE(yard.create(yard.batch_job("b", 1, "q", {"a"})));
  ASSERT_TRUE(yard.create(yard.batch_job("c", 9)));
  ASSERT_TRUE(yard.withdraw("c", Withdrawn::cancelled, "too large"));
  yard.exit("a", 0);
  test::Replay replay;
  ASSERT_TRUE(replay.run(*yard.ledger));
  for (const char* id : {"a", "b", "c"}) {
    const auto kept = yard.ledger->find_job({kRegion, id});
    ASSERT_TRUE(kept);
    EXPECT_EQ(to_json(replay.jobs.at(kept->number)), to_json(*kept)) << id;
  }
  EXPECT_TRUE(replay.catalog.queue({kRegion, "q"}));
}

}  // namespace
}  // namespace trainyard::control
