#include "domain/batch.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {
namespace {

TEST(RetryRules, PatternsEndInAStarAndKnowNoCase) {
  EXPECT_TRUE(matches("Host EC2*", "host ec2 (instance i-0a) terminated."));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("137", "137"));
  EXPECT_FALSE(matches("13", "137"));
  EXPECT_FALSE(matches("Host EC2*", "Essential container in task exited"));
}

TEST(RetryRules, TheFirstThatHoldsDecidesAndNoneMeansAnotherAttempt) {
  const RetryRule retry_on_loss{"Host EC2*", "", "", true}, exit_otherwise{"", "*", "", false};
  const RetryRule exit_on_3{"", "", "3", false}, both{"Essential*", "", "4*", false};
  const AttemptEnd lost{"Host EC2 (instance i-0a) terminated.", "", {}};
  const AttemptEnd three{"Essential container in task exited", "", 3},
      forty{"Essential container in task exited", "", 40};
  struct Row {
    uint32_t attempts_max;
    std::vector<RetryRule> rules;
    size_t made;
    AttemptEnd end;
    bool again;
  };
  const Row rows[] = {
      {1, {}, 1, three, false},
      {3, {}, 1, three, true},
      {3, {}, 3, three, false},
      {3, {retry_on_loss, exit_otherwise}, 1, lost, true},
      {3, {retry_on_loss, exit_otherwise}, 1, three, false},
      {3, {exit_otherwise, retry_on_loss}, 1, lost, false},
      {3, {exit_on_3}, 1, three, false},
      {3, {exit_on_3}, 1, forty, true},
      {3, {exit_on_3}, 1, lost, true},  // it has no exit code
      {3, {both}, 1, forty, false},
      {3, {both}, 1, three, true},
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    BatchPart batch;
    batch.attempts_max = rows[i].attempts_max;
    batch.retry_rules = rows[i].rules;
    EXPECT_EQ(tries_again(batch, rows[i].made, rows[i].end), rows[i].again) << "row " << i;
  }
}

Job batch_job(JobState state) {
  Job job;
  job.key = {"eu-west-1", "4b7d"};
  job.spec.groups = {{"default", "1 vCPU, 64 MiB", 1, Share{1, 64 << 20, 0}}};
  job.spec.batch.emplace();
  job.spec.batch->name = "mnist";
  job.spec.batch->queue = "quick";
  job.spec.batch->definition = "arn:aws:batch:eu-west-1:123456789012:job-definition/train:3";
  job.state = state;
  return job;
}

TEST(BatchJob, StatusFollowsTheState) {
  EXPECT_EQ(to_string(batch_status(batch_job(JobState::waiting))), "RUNNABLE");
  Job job = batch_job(JobState::waiting);
  job.awaits = {7};
  EXPECT_EQ(to_string(batch_status(job)), "PENDING");
  job = batch_job(JobState::active);
  job.attempts.emplace_back();
  EXPECT_EQ(to_string(batch_status(job)), "STARTING");
  job.attempts.back().training_started = Instant{};
  EXPECT_EQ(to_string(batch_status(job)), "RUNNING");
  job.state = JobState::stopping;
  EXPECT_EQ(to_string(batch_status(job)), "RUNNING");
  EXPECT_EQ(to_string(batch_status(batch_job(JobState::completed))), "SUCCEEDED");
  EXPECT_EQ(to_string(batch_status(batch_job(JobState::failed))), "FAILED");
  EXPECT_EQ(to_string(batch_status(batch_job(JobState::stopped))), "FAILED");
  for (int i = 0; i <= int(BatchStatus::failed); ++i)
    for (const JobState state : states_of(BatchStatus(i))) {
      Job one = batch_job(state);
      if (BatchStatus(i) == BatchStatus::pending) one.awaits = {1};
      if (BatchStatus(i) == BatchStatus::running) one.attempts.emplace_back().training_started = Instant{};
      EXPECT_EQ(batch_status(one), BatchStatus(i));
    }
}

TEST(BatchJob, ItsReasonIsTheUsersOwnWhenHeTookItBack) {
  Job job = batch_job(JobState::stopped);
  job.withdrawn = Withdrawn::terminated;
  job.withdrawn_reason = "enough";
  EXPECT_EQ(batch_status_reason(job), "enough");
  job.withdrawn = Withdrawn::no;
  job.stop_cause = StopCause::max_runtime;
  EXPECT_EQ(batch_status_reason(job), "Job attempt duration exceeded timeout");
}

TEST(BatchJob, AnAttemptsEndIsInTheWordsThatRulesMatch) {
  const std::string host = "Host EC2 (instance i-26f8567f256918229) terminated.";
  struct Row {
    std::optional<Fault> fault;
    std::string failure;
    std::optional<int> exit_code;
    AttemptEnd end;
  };
  const Row rows[] = {
      {{}, "", 0, {"Essential container in task exited", "", 0}},
      {Fault::algorithm, "my own words", 3, {"Essential container in task exited", "", 3}},
      {Fault::algorithm,
       "OutOfMemory: the limit",
       137,
       {"Essential container in task exited", "OutOfMemoryError: Container killed due to memory usage", 137}},
      {Fault::lost, "the agent is gone", {}, {host, "the agent is gone", {}}},
      {Fault::internal,
       "CannotPullContainerError: 503",
       {},
       {"Task failed to start", "CannotPullContainerError: 503", {}}},
      {Fault::client, "no such volume", {}, {"Task failed to start", "no such volume", {}}},
      {Fault::internal, "it was lost", 137, {"Task stopped by an internal error", "it was lost", 137}},
  };
  for (const Row& row : rows) {
    Job job = batch_job(JobState::failed);
    Attempt& attempt = job.attempts.emplace_back();
    attempt.machine = "box";
    attempt.fault = row.fault;
    attempt.failure = row.failure;
    attempt.exit_code = row.exit_code;
    const AttemptEnd end = end_of(job, attempt);
    EXPECT_EQ(end.status_reason, row.end.status_reason) << row.failure;
    EXPECT_EQ(end.reason, row.end.reason) << row.failure;
    EXPECT_EQ(end.exit_code, row.end.exit_code) << row.failure;
  }
}

TEST(BatchJob, AnAttemptThatWasInterruptedLostItsHostUnlessItWasDoneAllTheSame) {
  Job job = batch_job(JobState::waiting);
  Attempt& attempt = job.attempts.emplace_back();
  attempt.machine = "box";
  attempt.interruption = "the spot market";
  attempt.interrupted = Instant{};
  EXPECT_TRUE(matches("Host EC2 (instance i-*", end_of(job, attempt).status_reason));
  EXPECT_EQ(end_of(job, attempt).reason, "the spot market");
  job.state = JobState::completed;
  EXPECT_EQ(end_of(job, attempt).status_reason, "Essential container in task exited");
}

TEST(BatchJob, AContainerFindsWhereItIs) {
  Attempt attempt;
  attempt.number = 2;
  attempt.environment = "box";
  EXPECT_EQ(batch_variables(batch_job(JobState::active), attempt, 0),
            (std::map<std::string, std::string>{{"AWS_BATCH_JOB_ID", "4b7d"},
                                                {"AWS_BATCH_JQ_NAME", "quick"},
                                                {"AWS_BATCH_CE_NAME", "box"},
                                                {"AWS_BATCH_JOB_ATTEMPT", "2"}}));
}

TEST(BatchJob, SurvivesItsRecord) {
  Job job = batch_job(JobState::waiting);
  job.spec.batch->attempts_max = 4;
  job.spec.batch->retry_rules = {{"Host*", "", "1", true}};
  job.spec.batch->depends_on = {"a", "b"};
  job.awaits = {3, 4};
  job.withdrawn = Withdrawn::cancelled;
  job.withdrawn_reason = "no";
  job.attempts.emplace_back().environment = "box";
  job.attempts.back().exit_code = 3;
  job.attempts.back().failure = "words";
  job.attempts.back().fault = Fault::client;
  job.attempts.back().machine = "box-1";
  const auto read = job_from_json(to_json(job));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(job));
  EXPECT_EQ(read->spec.batch->definition_name(), "train");
  EXPECT_EQ(read->spec.group(0).share->memory_bytes, 64 << 20);
}

// -- queues, environments, definitions

ComputeEnvironment environment(const std::string& name, bool enabled = true) {
  ComputeEnvironment made;
  made.key = {"eu-west-1", name};
  made.enabled = enabled;
  return made;
}
JobQueue queue(const std::string& name, std::vector<std::string> environments, bool enabled = true) {
  JobQueue made;
  made.key = {"eu-west-1", name};
  made.enabled = enabled;
  made.environments = std::move(environments);
  return made;
}

TEST(BatchCatalog, WhatIsInUseOrEnabledIsNotRemoved) {
  BatchCatalog yard;
  put(yard, ResourceChange::create, environment("on"));
  put(yard, ResourceChange::create, environment("off", false));
  put(yard, ResourceChange::create, environment("used", false));
  put(yard, ResourceChange::create, queue("q", {"used"}));
  const auto why = [&](ResourceChange how, BatchResource resource) {
    const auto done = changed(yard, nullptr, how, std::move(resource));
    return done ? std::string("done") : done.error().message;
  };
  EXPECT_EQ(why(ResourceChange::create, environment("on")), "Object already exists");
  EXPECT_EQ(why(ResourceChange::create, environment("new")), "done");
  EXPECT_EQ(why(ResourceChange::remove, environment("on")), "Cannot delete, resource must be disabled: on");
  EXPECT_EQ(why(ResourceChange::remove, environment("off")), "done");
  EXPECT_EQ(why(ResourceChange::remove, environment("used")),
            "Cannot delete, found existing JobQueue relationship: q");
  EXPECT_EQ(why(ResourceChange::update, environment("none")), "the compute environment none does not exist");
  EXPECT_EQ(why(ResourceChange::create, queue("p", {"none"})), "the compute environment none does not exist");
  EXPECT_EQ(why(ResourceChange::create, queue("q", {"on"})), "Object already exists");
  EXPECT_EQ(why(ResourceChange::update, queue("q", {"on"})), "done");
  EXPECT_EQ(why(ResourceChange::update, queue("p", {"on"})), "the job queue p does not exist");
  EXPECT_EQ(why(ResourceChange::remove, queue("q", {})), "Cannot delete, resource must be disabled: q");
  put(yard, ResourceChange::update, queue("q", {"used"}, false));
  EXPECT_EQ(why(ResourceChange::remove, queue("q", {})), "done");
  put(yard, ResourceChange::remove, queue("q", {}));
  EXPECT_EQ(why(ResourceChange::remove, environment("used")), "done");
}

TEST(BatchCatalog, DefinitionsAreCountedByName) {
  JobDefinition definition;
  definition.key = {"eu-west-1", "train"};
  const auto first = changed({}, nullptr, ResourceChange::create, definition);
  ASSERT_TRUE(first);
  const auto& one = std::get<JobDefinition>(*first);
  EXPECT_EQ(one.revision, 1u);
  EXPECT_EQ(std::get<JobDefinition>(*changed({}, &one, ResourceChange::create, definition)).revision, 2u);
}

TEST(BatchCatalog, NounsSurviveTheirRecords) {
  ComputeEnvironment one = environment("box", false);
  one.cpus_max = 12;
  one.request = {{"type", "MANAGED"}};
  JobQueue two = queue("q", {"box", "other"});
  two.priority = 7;
  JobDefinition three;
  three.key = {"eu-west-1", "train"};
  three.revision = 9;
  three.active = false;
  for (const BatchResource& resource : {BatchResource(one), BatchResource(two), BatchResource(three)}) {
    const auto read = batch_resource_from_json(kind_of(resource), to_json(resource));
    ASSERT_TRUE(read) << kind_of(resource);
    EXPECT_EQ(to_json(*read), to_json(resource));
  }
  EXPECT_FALSE(batch_resource_from_json("share", Json::object()));
}

TEST(BatchArn, NamesAreFoundInArnsOfTheirKindOnly) {
  const std::string arn = batch_arn("123456789012", "eu-west-1", kQueueArn, "q");
  EXPECT_EQ(arn, "arn:aws:batch:eu-west-1:123456789012:job-queue/q");
  EXPECT_EQ(name_in_arn(arn, kQueueArn), "q");
  EXPECT_EQ(name_in_arn("q", kQueueArn), "q");
  EXPECT_EQ(name_in_arn(arn, kEnvironmentArn), arn);
}

}  // namespace
}  // namespace trainyard::domain
