#include "domain/job_check.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "domain/limits.hpp"

namespace trainyard::domain {
namespace {

constexpr int64_t kExtremes[] = {-1, INT32_MIN, INT64_MIN, int64_t{1} << 32, INT64_MAX};

Job a_valid_job() {
  Job job;
  job.number = 1;
  job.key = {"us-east-1", "a"};
  job.spec.groups = {{"homogeneousCluster", "ml.m5.large", 2}};
  job.transitions = {{Phase::starting, "", Instant{}, {}}};
  return job;
}

Job a_running_job() {
  Job job = a_valid_job();
  job.state = JobState::active;
  job.attempts.emplace_back();
  job.attempts.back().hosts.resize(2);
  return job;
}

TEST(CheckLimits, AcceptsOrdinaryNumbers) {
  EXPECT_TRUE(check_limits(a_valid_job().spec));
  JobSpec largest = a_valid_job().spec;
  largest.groups.front().count = uint32_t(kGangHostsMax);
  largest.volume_gib = kVolumeGibMax;
  largest.max_wait_seconds = largest.max_runtime_seconds = kSecondsMax;
  EXPECT_TRUE(check_limits(largest)) << check_limits(largest).error().message;
}

TEST(CheckLimits, SumsHostsIn64Bits) {
  JobSpec spec = a_valid_job().spec;
  spec.groups = {
      {"a", "ml.m5.large", 2147483647}, {"b", "ml.m5.large", 2147483647}, {"c", "ml.m5.large", 2}};
  EXPECT_EQ(spec.hosts(), UINT32_MAX) << "0 in 32 bits";
  EXPECT_EQ(check_limits(spec).error().message,
            "instance group a: the number of hosts is 2147483647, and must be between 1 and 10000");
  spec.groups = {{"a", "ml.m5.large", 6000}, {"b", "ml.m5.large", 4001}};
  EXPECT_EQ(
      check_limits(spec).error().message,
      "the number of hosts over all instance groups is 10001, and must be between 1 and 10000");
  spec.groups = {{"a", "ml.m5.large", 0}};
  EXPECT_FALSE(check_limits(spec));
  spec.groups.clear();
  EXPECT_FALSE(check_limits(spec));
}

TEST(CheckLimits, ChecksPreferences) {
  JobSpec spec = a_valid_job().spec;
  spec.groups = {{"a", "ml.m5.large", 1}};
  spec.preferences = {{"a", "ml.m5.large", 1}, {"a", "ml.m5.xlarge", uint32_t(kGangHostsMax)}};
  EXPECT_TRUE(check_limits(spec)) << check_limits(spec).error().message;
  spec.preferences[1].count = uint32_t(kGangHostsMax) + 1;
  EXPECT_EQ(check_limits(spec).error().message,
            "instance preference ml.m5.xlarge: the number of hosts is 10001, and must be between 1 "
            "and 10000");
  spec.preferences.assign(6, {"a", "ml.m5.large", 1});
  EXPECT_FALSE(check_limits(spec));
  spec.preferences.resize(1);
  spec.groups.push_back({"b", "ml.m5.large", 1});
  EXPECT_FALSE(check_limits(spec)) << "one group for each preference";
}

TEST(CheckLimits, EveryNumberHasALimit) {
  const std::function<void(JobSpec&, int64_t)> sets[] = {
      [](JobSpec& spec, int64_t value) { spec.volume_gib = value; },
      [](JobSpec& spec, int64_t value) { spec.max_runtime_seconds = value; },
      [](JobSpec& spec, int64_t value) { spec.max_wait_seconds = value; },
      [](JobSpec& spec, int64_t value) { spec.max_pending_seconds = value; },
      [](JobSpec& spec, int64_t value) { spec.keep_alive_seconds = value; },
      [](JobSpec& spec, int64_t value) {
        spec.groups[0].share = Share{1, value, 0};
      },
      [](JobSpec& spec, int64_t value) {
        spec.groups[0].share = Share{1, 0, value};
      },
      [](JobSpec& spec, int64_t value) {
        spec.groups[0].share = Share{double(value), 0, 0};
      },
      [](JobSpec& spec, int64_t value) {
        spec.queue.emplace();
        spec.contract = Contract::plain;
        spec.array.size = uint32_t(value | 1 << 20);
      },
      [](JobSpec& spec, int64_t value) {
        spec.queue.emplace();
        spec.contract = Contract::plain;
        spec.main_node = uint32_t(value | 1 << 20);
      },
      [](JobSpec& spec, int64_t value) {
        spec.queue.emplace();
        spec.contract = Contract::plain;
        spec.queue->consumes = {{"licence", value | int64_t{1} << 50}};
      },
  };
  size_t which = 0;
  for (const auto& set : sets) {
    for (const int64_t value : kExtremes) {
      // 2^32 bytes of memory are within the limit.
      if (which == 5 && value == int64_t{1} << 32) continue;
      JobSpec spec = a_valid_job().spec;
      set(spec, value);
      EXPECT_FALSE(check_limits(spec)) << which << ": " << value;
    }
    ++which;
  }
  JobSpec nan = a_valid_job().spec;
  nan.groups[0].share = Share{0.0 / 0.0, 0, 0};
  EXPECT_FALSE(check_limits(nan));
}

TEST(CheckConsistent, AcceptsConsistentJobs) {
  EXPECT_TRUE(check_consistent(a_valid_job()));
  const auto running = check_consistent(a_running_job());
  EXPECT_TRUE(running) << running.error().message;
}

TEST(CheckConsistent, NamesInconsistentParts) {
  const auto message = [](const Job& job) {
    const auto checked = check_consistent(job);
    return checked ? "sound" : checked.error().message;
  };
  Job job = a_valid_job();
  job.state = JobState::active;
  EXPECT_EQ(message(job), "it is active without an attempt");
  job = a_running_job();
  job.attempts.back().hosts.pop_back();
  EXPECT_EQ(message(job), "its last attempt has 1 host, but its spec requests 2");
  job = a_running_job();
  job.attempts.back().first_failed = 2;
  EXPECT_EQ(message(job), "first_failed is 2, but the attempt has 2 hosts");
  job = a_running_job();
  job.state = JobState::waiting;
  EXPECT_EQ(message(job), "attempt 1 has not ended, but the job is waiting");
  job = a_running_job();
  job.attempts.back().state = AttemptState::ended;
  EXPECT_EQ(message(job), "attempt 1 has ended, but has no end time");
  job = a_valid_job();
  job.transitions.clear();
  EXPECT_EQ(message(job), "transitions must have at least one phase");
  job = a_valid_job();
  job.created = from_milliseconds(INT64_MIN);
  EXPECT_EQ(message(job).substr(0, 32), "created is -9223372036854775808,");
  job = a_valid_job();
  job.spec.queue.emplace();
  job.spec.contract = Contract::plain;
  job.spec.main_node = 2;
  EXPECT_EQ(message(job), "main_node is 2, but the job has 2 hosts");
  job = a_valid_job();
  job.spec.queue.emplace();
  job.spec.contract = Contract::plain;
  job.spec.array.size = 3;
  job.children_made = 4;
  EXPECT_EQ(message(job), "children_made is 4, and must be between 0 and 3");
  job.parent = 1;
  job.number = 5;
  job.children_made = 0;
  EXPECT_EQ(message(job), "job 5 is not a child of the array 1 of 3");
}

}  // namespace
}  // namespace trainyard::domain
