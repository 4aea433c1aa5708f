#include "batch/service_job.hpp"

#include <gtest/gtest.h>

#include "batch/catalog.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

Job service_job(JobState state) {
  Job job;
  job.key = {"eu-west-1", "digits-4b7d"};
  job.spec.groups = {{"homogeneousCluster", "ml.m5.large", 2}};
  job.spec.queue.emplace();
  job.state = state;
  return job;
}

TEST(ServiceJob, HasTheStatusOfItsState) {
  Job job = service_job(JobState::active);
  job.attempts.emplace_back().hosts.resize(2);
  EXPECT_EQ(to_string(service_status(job)), "SCHEDULED");
  job.attempts.back().hosts[1].state = HostState::preparing;
  EXPECT_EQ(to_string(service_status(job)), "STARTING");
  job.attempts.back().training_started = Instant{};
  EXPECT_EQ(to_string(service_status(job)), "RUNNING");
  job.state = JobState::stopping;
  EXPECT_EQ(to_string(service_status(job)), "RUNNING");
  EXPECT_EQ(to_string(service_status(service_job(JobState::waiting))), "RUNNABLE");
  EXPECT_EQ(to_string(service_status(service_job(JobState::completed))), "SUCCEEDED");
  EXPECT_EQ(to_string(service_status(service_job(JobState::failed))), "FAILED");
  EXPECT_EQ(to_string(service_status(service_job(JobState::stopped))), "FAILED");
  for (int i = 0; i <= int(ServiceStatus::failed); ++i)
    for (const JobState state : states_of(ServiceStatus(i))) {
      Job one = service_job(state);
      one.attempts.emplace_back().hosts.resize(1);
      if (ServiceStatus(i) == ServiceStatus::starting)
        one.attempts[0].hosts[0].state = HostState::downloading;
      if (ServiceStatus(i) == ServiceStatus::running) one.attempts[0].training_started = Instant{};
      EXPECT_EQ(service_status(one), ServiceStatus(i));
    }
}

TEST(ServiceJob, DescribesAnEndInTheTextsThatRetryRulesMatch) {
  struct Row {
    std::optional<Fault> fault;
    std::string failure;
    std::optional<int> exit_code;
    std::string said;
  };
  for (const Row& row :
       {Row{Fault::algorithm, "division by zero", 1,
            "AlgorithmError: division by zero, exit code: 1"},
        Row{Fault::algorithm, "", 3, "AlgorithmError: the training process failed, exit code: 3"},
        Row{Fault::client, "no such image", {}, "ClientError: no such image"},
        Row{Fault::internal,
            "the host's agent is gone",
            {},
            "InternalServerError: We encountered an internal error. Please try again."},
        Row{{}, "", 0, "Completed"}}) {
    Attempt attempt;
    attempt.fault = row.fault;
    attempt.failure = row.failure;
    attempt.exit_code = row.exit_code;
    EXPECT_EQ(service_end_of(attempt), "Received status from SageMaker:" + row.said);
  }
}

TEST(ServiceJob, HasAStatusReasonWhenItWaitsOrHasEnded) {
  Job job = service_job(JobState::waiting);
  job.wait_reason = "waits for its turn";
  EXPECT_EQ(service_status_reason(job), "waits for its turn");
  job.state = JobState::stopped;
  EXPECT_EQ(service_status_reason(job), "Received status from SageMaker:Stopped");
  job.cancellation = Cancellation::terminated;
  job.cancellation_reason = "enough";
  EXPECT_EQ(service_status_reason(job), "enough");
  job = service_job(JobState::stopped);
  job.stop_cause = StopCause::max_runtime;
  EXPECT_EQ(service_status_reason(job), "Job attempt duration exceeded timeout");
  EXPECT_EQ(service_status_reason(service_job(JobState::active)), "");
}

TEST(ServiceJob, IsEqualAfterWritingAndReading) {
  Job job = service_job(JobState::waiting);
  job.spec.queue->request = {{"serviceRequestPayload", "{}"}};
  job.spec.queue->share = "a";
  job.spec.queue->quota_share = "b";
  job.spec.queue->priority = 7;
  job.spec.queue->preemptions_max = 2;
  job.spec.queue->consumes = {{"licences", 3}};
  EXPECT_EQ(job.priority(), 7);
  job.new_priority = 9;
  EXPECT_EQ(job.priority(), 9);
  const auto read = job_from_json(to_json(job));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(job));
  EXPECT_FALSE(read->spec.contract == Contract::plain);
  EXPECT_EQ(read->spec.queue->consumes[0].quantity, 3);
}

}  // namespace
}  // namespace trainyard::batch
