#include "batch/status.hpp"

#include <gtest/gtest.h>

#include "batch/variables.hpp"
#include "domain/array.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

Job batch_job(JobState state) {
  Job job;
  job.key = {"eu-west-1", "4b7d"};
  job.spec.groups = {{"default", "1 vCPU, 64 MiB", 1, Share{1, 64 << 20, 0}}};
  job.spec.queue.emplace();
  job.spec.contract = Contract::plain;
  job.spec.display_name = "mnist";
  job.spec.queue->name = "quick";
  job.spec.definition = "arn:aws:batch:eu-west-1:123456789012:job-definition/train:3";
  job.state = state;
  return job;
}

TEST(BatchJob, HasTheStatusOfItsState) {
  EXPECT_EQ(status_name(stage_of(batch_job(JobState::waiting))), "RUNNABLE");
  Job job = batch_job(JobState::waiting);
  job.awaits = {7};
  EXPECT_EQ(status_name(stage_of(job)), "PENDING");
  job = batch_job(JobState::active);
  job.attempts.emplace_back();
  EXPECT_EQ(status_name(stage_of(job)), "STARTING");
  job.attempts.back().training_started = Instant{};
  EXPECT_EQ(status_name(stage_of(job)), "RUNNING");
  job.state = JobState::stopping;
  EXPECT_EQ(status_name(stage_of(job)), "RUNNING");
  EXPECT_EQ(status_name(stage_of(batch_job(JobState::completed))), "SUCCEEDED");
  EXPECT_EQ(status_name(stage_of(batch_job(JobState::failed))), "FAILED");
  EXPECT_EQ(status_name(stage_of(batch_job(JobState::stopped))), "FAILED");
  for (int i = 0; i <= int(Stage::failed); ++i)
    for (const JobState state : states_of(Stage(i))) {
      Job one = batch_job(state);
      if (Stage(i) == Stage::pending) one.awaits = {1};
      if (Stage(i) == Stage::running) one.attempts.emplace_back().training_started = Instant{};
      EXPECT_EQ(stage_of(one), Stage(i));
    }
}

TEST(BatchJob, HasTheReasonOfTheUserThatCancelledIt) {
  Job job = batch_job(JobState::stopped);
  job.cancellation = Cancellation::terminated;
  job.cancellation_reason = "enough";
  EXPECT_EQ(status_reason(job), "enough");
  job.cancellation = Cancellation::no;
  job.stop_cause = StopCause::max_runtime;
  EXPECT_EQ(status_reason(job), "Job attempt duration exceeded timeout");
}

TEST(BatchJob, DescribesTheEndOfAnAttemptInTheTextsThatRetryRulesMatch) {
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
       {"Essential container in task exited",
        "OutOfMemoryError: Container killed due to memory usage", 137}},
      {Fault::lost, "the agent is gone", {}, {host, "the agent is gone", {}}},
      {Fault::internal,
       "CannotPullContainerError: 503",
       {},
       {"Task failed to start", "CannotPullContainerError: 503", {}}},
      {Fault::client, "no such volume", {}, {"Task failed to start", "no such volume", {}}},
      {Fault::internal,
       "it was lost",
       137,
       {"Task stopped by an internal error", "it was lost", 137}},
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

TEST(BatchJob, ShowsTheSignalOrTheMemoryLimitInTheReason) {
  const auto shown = [](std::optional<int> exit_code, const std::string& failure,
                        Fault fault = Fault::algorithm) {
    Job job = batch_job(JobState::failed);
    Attempt& attempt = job.attempts.emplace_back();
    attempt.ended = Instant{};
    attempt.fault = fault;
    attempt.failure = failure;
    attempt.exit_code = exit_code;
    EXPECT_EQ(status_reason(job), attempt_status_reason(job, attempt));
    return status_reason(job);
  };
  const std::string exited = "Essential container in task exited";
  EXPECT_EQ(shown(3, "my own words"), exited);
  EXPECT_EQ(shown({}, ""), exited);
  EXPECT_EQ(shown(139, "killed by SIGSEGV (segmentation fault)\nlast line"),
            exited + ": killed by SIGSEGV (segmentation fault)");
  EXPECT_EQ(shown(137, "last line"), exited + ": killed by SIGKILL");
  EXPECT_EQ(shown(137, "OutOfMemory: exceeded its 1.0 GiB memory limit\nlast line"),
            exited + ": OutOfMemory: exceeded its 1.0 GiB memory limit");
  EXPECT_EQ(shown(137, "it was lost", Fault::internal), "Task stopped by an internal error");
}

TEST(BatchJob, ShowsALostHostForAnInterruptedAttemptUnlessItHadFinished) {
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

TEST(BatchJob, HasVariablesThatIdentifyItInItsContainer) {
  Attempt attempt;
  attempt.number = 2;
  attempt.environment = "box";
  EXPECT_EQ(variables_of(batch_job(JobState::active), attempt, 0),
            (std::map<std::string, std::string>{{"AWS_BATCH_JOB_ID", "4b7d"},
                                                {"AWS_BATCH_JQ_NAME", "quick"},
                                                {"AWS_BATCH_CE_NAME", "box"},
                                                {"AWS_BATCH_JOB_ATTEMPT", "2"}}));
}

TEST(BatchJob, HasAVariableWithTheIndexOfAChild) {
  Job array = batch_job(JobState::failed);
  array.number = 40;
  array.spec.array.size = 3;
  EXPECT_EQ(status_reason(array), "Array Child Job failed");
  const auto variables = variables_of(child_of(array, 2), Attempt(), 0);
  EXPECT_EQ(variables.at("AWS_BATCH_JOB_ID"), "4b7d:2");
  EXPECT_EQ(variables.at("AWS_BATCH_JOB_ARRAY_INDEX"), "2");
  EXPECT_EQ(variables.at("AWS_BATCH_JOB_ARRAY_SIZE"), "3");
}

}  // namespace
}  // namespace trainyard::batch
