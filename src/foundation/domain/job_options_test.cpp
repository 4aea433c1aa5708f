#include "domain/job_options.hpp"

#include <gtest/gtest.h>

#include "domain/job.hpp"

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

TEST(QueuedJob, SurvivesItsRecord) {
  Job job;
  job.key = {"eu-west-1", "4b7d"};
  job.spec.groups = {{"default", "1 vCPU, 64 MiB", 1, Share{1, 64 << 20, 0}}};
  job.spec.batch.emplace().definition = "arn:aws:batch:eu-west-1:123456789012:job-definition/train:3";
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

}  // namespace
}  // namespace trainyard::domain
