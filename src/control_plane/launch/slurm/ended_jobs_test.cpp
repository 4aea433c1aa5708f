#include "launch/slurm/ended_jobs.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "launch/testing/memory_slurm.hpp"

namespace trainyard::launch {
namespace {

SlurmJob job_in(uint64_t id, const std::string& state) {
  SlurmJob job;
  job.id = id;
  job.state = state;
  job.comment = "trainyard/1 of " + std::to_string(id);
  job.nodes = "n1";
  return job;
}

class EndedJobsTest : public testing::Test {
 protected:
  // The jobs that the launcher sees when slurmctld lists these.
  std::vector<SlurmJob> see(std::vector<SlurmJob> listed) {
    jobs_.complete(client_, listed);
    return listed;
  }
  TestClock clock_;
  MemorySlurm slurm_;
  MemorySlurm::Client client_{slurm_};
  EndedJobs jobs_{clock_};
};

TEST_F(EndedJobsTest, HaveTheEndThatTheAccountingKnows) {
  see({job_in(1, "RUNNING"), job_in(2, "COMPLETED"), job_in(3, "RUNNING")});
  slurm_.accounted = {job_in(1, "FAILED")};
  slurm_.accounted.front().reason = "exit code 3";
  slurm_.accounted.front().comment = "";
  const auto jobs = see({job_in(3, "RUNNING")});
  ASSERT_EQ(jobs.size(), 2u) << "the second one had ended before";
  EXPECT_EQ(jobs[1].id, 1u);
  EXPECT_EQ(jobs[1].state, "FAILED");
  EXPECT_EQ(jobs[1].reason, "exit code 3");
  EXPECT_EQ(jobs[1].comment, "trainyard/1 of 1") << "as slurmctld listed it";
  slurm_.accounted.clear();
  EXPECT_EQ(see({job_in(3, "RUNNING")}).size(), 2u) << "it is not requested again";
  clock_.advance(EndedJobs::kKept);
  EXPECT_EQ(see({job_in(3, "RUNNING")}).size(), 1u);
}

TEST_F(EndedJobsTest, AreMissingIfTheAccountingDoesNotKnowTheirEnd) {
  see({job_in(1, "RUNNING"), job_in(2, "RUNNING")});
  SlurmJob of_another = job_in(2, "COMPLETED");
  of_another.user = "eve";
  slurm_.accounted = {of_another};
  EXPECT_TRUE(see({}).empty());
}

TEST_F(EndedJobsTest, AreListedAsBeforeUntilTheAccountingAnswers) {
  see({job_in(1, "RUNNING")});
  slurm_.accounting_away = unavailable("slurmdbd does not answer");
  ASSERT_EQ(see({}).size(), 1u);
  EXPECT_EQ(see({}).front().state, "RUNNING");
  slurm_.accounting_away.reset();
  slurm_.accounted = {job_in(1, "NODE_FAIL")};
  EXPECT_EQ(see({}).front().state, "NODE_FAIL");
  see({job_in(4, "RUNNING")});
  slurm_.accounting_away = unavailable("slurmdbd does not answer");
  ASSERT_EQ(see({}).size(), 2u);
  clock_.advance(EndedJobs::kAnswerMax);
  EXPECT_EQ(see({}).size(), 1u) << "only what is known to have ended";
}

TEST_F(EndedJobsTest, AreMissingWithoutAccountingAndQueryItOnce) {
  see({job_in(1, "RUNNING"), job_in(2, "RUNNING")});
  slurm_.accounting_away = not_found("Slurm accounting storage is disabled");
  EXPECT_EQ(see({job_in(2, "RUNNING")}).size(), 1u);
  slurm_.accounting_away.reset();
  slurm_.accounted = {job_in(2, "FAILED")};
  EXPECT_TRUE(see({}).empty());
}

TEST_F(EndedJobsTest, AreNoLongerAddedOnceSlurmListsThemAgain) {
  see({job_in(1, "RUNNING")});
  slurm_.accounted = {job_in(1, "FAILED")};
  ASSERT_EQ(see({}).size(), 1u);
  const auto jobs = see({job_in(1, "RUNNING")});
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs.front().state, "RUNNING");
}

}  // namespace
}  // namespace trainyard::launch
