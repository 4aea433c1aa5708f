#include "domain/usage.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trainyard::domain {
namespace {

const Instant kStart = from_milliseconds(1'000'000'000);

Job job_of(Duration ran, double cpus, AttemptState state) {
  Job job;
  job.key = {"eu-west-1", "a"};
  job.spec.queue.emplace();
  job.spec.contract = Contract::plain;
  job.spec.queue->name = "q";
  job.spec.queue->share = "red";
  Attempt& attempt = job.attempts.emplace_back();
  attempt.state = state;
  attempt.started = kStart;
  attempt.hosts.resize(2);
  for (Host& host : attempt.hosts) host.share.cpus = cpus / 2;
  if (state == AttemptState::ended) attempt.ended = kStart + ran;
  return job;
}

TEST(Usage, DecaysToAThirdInItsDecayTime) {
  EXPECT_DOUBLE_EQ(decayed({90, kStart}, 60s, kStart).cpu_seconds, 90);
  EXPECT_NEAR(decayed({90, kStart}, 60s, kStart + 60s).cpu_seconds, 90 / std::exp(1), 1e-9);
  EXPECT_DOUBLE_EQ(decayed({90, kStart}, 60s, kStart - 5s).cpu_seconds, 90)
      << "clocks are set back";
}

TEST(Usage, ConvergesToTheDecayTime) {
  EXPECT_NEAR(used_since(4, kStart, 600s, kStart + 1s), 4, 0.01) << "nothing has decayed yet";
  EXPECT_NEAR(used_since(4, kStart, 600s, kStart + 24h), 4 * 600, 1e-6);
}

TEST(Usage, MayBeComputedInSteps) {
  const double whole = used_since(4, kStart, 600s, kStart + 1000s);
  const Usage half{used_since(4, kStart, 600s, kStart + 400s), kStart + 400s};
  EXPECT_NEAR(decayed(half, 600s, kStart + 1000s).cpu_seconds +
                  used_since(4, kStart + 400s, 600s, kStart + 1000s),
              whole, 1e-9);
}

TEST(Usage, IsAccountedOnlyWhenAnAttemptEnds) {
  const Job runs = job_of({}, 4, AttemptState::running),
            ended = job_of(100s, 4, AttemptState::ended);
  EXPECT_FALSE(usage_after({}, nullptr, runs, 600s));
  EXPECT_FALSE(usage_after({}, &runs, runs, 600s));
  EXPECT_FALSE(usage_after({}, &ended, ended, 600s)) << "already accounted";
  const auto usage = usage_after({}, &runs, ended, 600s);
  ASSERT_TRUE(usage);
  EXPECT_DOUBLE_EQ(usage->cpu_seconds, used_since(4, kStart, 600s, kStart + 100s));
  EXPECT_EQ(usage->at, kStart + 100s);
  EXPECT_DOUBLE_EQ(usage->cpus, 4) << "so jobs last 100 s, minus the decayed part";
  const auto both = usage_after(Usage{50, kStart}, &runs, ended, 600s);
  EXPECT_DOUBLE_EQ(both->cpu_seconds,
                   usage->cpu_seconds + decayed({50, kStart}, 600s, kStart + 100s).cpu_seconds);
  const auto late = usage_after(Usage{50, kStart + 150s}, &runs, ended, 600s);
  EXPECT_EQ(late->at, kStart + 150s);
  EXPECT_DOUBLE_EQ(late->cpus, 4 * std::exp(-50.0 / 600));
  EXPECT_DOUBLE_EQ(late->cpu_seconds, 50 + decayed(*usage, 600s, kStart + 150s).cpu_seconds);
}

TEST(Usage, BelongsToTheShareOrTheUser) {
  Job job = job_of({}, 1, AttemptState::running);
  EXPECT_EQ(*share_of(job), (ShareKey{{"eu-west-1", "q"}, "red"}));
  job.spec.queue->share.clear();
  EXPECT_FALSE(share_of(job));
  job.spec.queue.reset();
  job.spec.contract = Contract::training;
  job.spec.principal = "alice";
  EXPECT_EQ(*share_of(job), (ShareKey{{}, "alice"}));
}

TEST(Usage, DecayedUsageIsNegligible) {
  EXPECT_FALSE(is_negligible({1, kStart}, 60s, kStart + 60s));
  EXPECT_TRUE(is_negligible({1, kStart}, 60s, kStart + 600s));
}

}  // namespace
}  // namespace trainyard::domain
