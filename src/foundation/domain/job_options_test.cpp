#include "domain/job_options.hpp"

#include <gtest/gtest.h>

#include "domain/job.hpp"

namespace trainyard::domain {
namespace {

TEST(RetryRules, PatternsMayEndInAStarAndIgnoreCase) {
  EXPECT_TRUE(matches("Host EC2*", "host ec2 (instance i-0a) terminated."));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("137", "137"));
  EXPECT_FALSE(matches("13", "137"));
  EXPECT_FALSE(matches("Host EC2*", "Essential container in task exited"));
}

TEST(RetryRules, TheFirstMatchDecidesAndOtherwiseTheJobIsRetried) {
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
      {3, {exit_on_3}, 1, lost, true},  // no exit code
      {3, {both}, 1, forty, false},
      {3, {both}, 1, three, true},
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    const RetryOptions retry{rows[i].attempts_max, rows[i].rules};
    EXPECT_EQ(tries_again(retry, rows[i].made, rows[i].end), rows[i].again) << "row " << i;
  }
}

TEST(QueuedJob, RecordRoundTrips) {
  Job job;
  job.key = {"eu-west-1", "4b7d"};
  job.spec.groups = {{"default", "1 vCPU, 64 MiB", 1, Share{1, 64 << 20, 0}}};
  job.spec.queue.emplace();
  job.spec.contract = Contract::plain;
  job.spec.definition = "arn:aws:batch:eu-west-1:123456789012:job-definition/train:3";
  job.spec.retry.attempts_max = 4;
  job.spec.retry.rules = {{"Host*", "", "1", true}};
  job.spec.depends_on = {"a", "b"};
  job.awaits = {3, 4};
  job.cancellation = Cancellation::cancelled;
  job.cancellation_reason = "no";
  job.attempts.emplace_back().environment = "box";
  job.attempts.back().exit_code = 3;
  job.attempts.back().failure = "words";
  job.attempts.back().fault = Fault::client;
  job.attempts.back().machine = "box-1";
  const auto read = job_from_json(to_json(job));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(job));
  EXPECT_EQ(read->spec.group(0).share->memory_bytes, 64 << 20);
}

// The ledger and the wire contain records of earlier versions, so members keep their names and
// positions.
TEST(QueuedJob, RecordEqualsThatOfEarlierVersions) {
  JobSpec spec;
  spec.groups = {{"default", "1 vCPU, 64 MiB", 1}};
  EXPECT_FALSE(to_json(spec).contains("batch"));
  spec.contract = Contract::plain;
  spec.queue.emplace().name = "quick";
  spec.display_name = "mnist";
  spec.definition = "train:3";
  EXPECT_EQ(
      to_json(spec)["batch"],
      Json::parse(R"({"name":"mnist","queue":"quick","definition":"train:3","attempts_max":1})"));
  EXPECT_EQ(spec.listed_queue(), "quick");
  spec.contract = Contract::training;
  spec.queue = QueueOptions{"q", "share", "quota", 7, {{"licences", 2}}, 3, {{"a", 1}}};
  spec.retry = {4, {{"Host*", "", "1", true}}};
  spec.depends_on = {"a"};
  spec.depends_on_alike = {"b"};
  spec.array = {5, true};
  spec.main_node = 0;
  const Json whole =
      Json::parse(R"({"name":"mnist","queue":"q","definition":"train:3","attempts_max":4,
    "depends_on":["a"],"main_node":0,"service":true,"service_request":{"a":1},"share":"share",
    "quota_share":"quota","priority":7,"preemptions_max":3,"consumes":[{"resource":"licences","quantity":2}],
    "array_size":5,"sequential":true,"depends_on_alike":["b"],
    "retry_rules":[{"retry":true,"status_reason":"Host*","exit_code":"1"}]})");
  EXPECT_EQ(to_json(spec)["batch"], whole);
  EXPECT_EQ(spec.listed_queue(), "service/q");
  const auto read = job_spec_from_json(to_json(spec));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->contract, Contract::training);
  EXPECT_EQ(to_json(*read), to_json(spec));
}

}  // namespace
}  // namespace trainyard::domain
