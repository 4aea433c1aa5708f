#include "reconcile/replay_view.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "domain/array.hpp"

namespace trainyard::reconcile {
namespace {

using namespace domain;

const Instant kReplayBegin = from_milliseconds(1'763'631'900'000);
const Instant kReplayEnd = kReplayBegin + 1h;

struct ReplayWorld {
  Snapshot settings;
  ReplayWorld() {
    settings.machines = {{"box-1", 8, int64_t{64} << 30, 0}};
    settings.catalog = std::make_shared<batch::Catalog>();
  }
  ReplayHistoryBuilder builder() const {
    return ReplayHistoryBuilder(settings, {}, {}, {kReplayBegin, kReplayEnd, kReplayEnd + 1h});
  }
};

// Makes a job that was created and started at these times after the begin of the period.
Job recorded_job(JobNumber number, Duration created, std::optional<Duration> started = {},
                 std::optional<Duration> ended = {}) {
  Job job;
  job.number = number;
  job.key = {"eu-west-1", "job-" + std::to_string(number)};
  job.spec.groups = {{"homogeneousCluster", "ml.m5.xlarge", 1}};  // 4 vCPU
  job.spec.principal = "ann";
  job.created = kReplayBegin + created;
  if (!started) return job;
  Host host;
  host.machine = "box-1";
  host.share = {4, int64_t{16} << 30, 0};
  Attempt attempt;
  attempt.hosts = {host};
  attempt.started = kReplayBegin + *started;
  job.state = JobState::active;
  if (ended) {
    attempt.state = AttemptState::ended;
    attempt.ended = kReplayBegin + *ended;
    job.state = JobState::completed;
  }
  job.attempts = {attempt};
  return job;
}

TEST(ReplayHistory, HasTheJobsOfThePeriodInTheirOrder) {
  ReplayWorld world;
  auto builder = world.builder();
  builder.add(recorded_job(3, 20s, 30s, 90s));
  builder.add(recorded_job(2, 10s, 10s));             // runs until now
  builder.add(recorded_job(4, 30s));                  // still waits
  builder.add(recorded_job(1, -5min, -1min, 2min));   // ran when the period began
  builder.add(recorded_job(5, -5min, -4min, -1min));  // ended before it
  builder.add(recorded_job(6, 61min));                // submitted after it
  builder.add(recorded_job(3, 20s, 30s, 90s));        // again
  Job cancelled = recorded_job(7, 40s);
  cancelled.state = JobState::stopped;
  cancelled.modified = kReplayBegin + 1min;
  builder.add(cancelled);
  const schedule::ReplayHistory history = builder.take();
  ASSERT_EQ(history.jobs.size(), 4u);
  EXPECT_EQ(builder.keys()[0].name, "job-1");
  EXPECT_EQ(builder.keys()[3].name, "job-4");
  EXPECT_EQ(builder.counts().never_started, 1u);
  EXPECT_EQ(builder.counts().estimated, 1u);
  EXPECT_EQ(builder.counts().still_running, 1u);
  EXPECT_TRUE(history.cluster.running.empty() && history.cluster.waiting.empty());

  const schedule::RecordedJob& before = history.jobs[0];
  ASSERT_TRUE(before.running);
  EXPECT_EQ(before.running->hosts[0].machine, "box-1");
  EXPECT_EQ(before.running->started, kReplayBegin - 1min);
  EXPECT_EQ(before.arrival.lasts, Duration(3min));
  EXPECT_FALSE(before.counts);
  const schedule::RecordedJob& runs = history.jobs[1];
  EXPECT_FALSE(runs.arrival.lasts);
  EXPECT_FALSE(runs.ended);
  const schedule::RecordedJob& whole = history.jobs[2];
  EXPECT_EQ(whole.arrival.lasts, Duration(60s));
  EXPECT_EQ(whole.arrival.job.requests[0].share.cpus, 4);
  EXPECT_EQ(whole.user, "ann");
  EXPECT_TRUE(whole.counts);
  const schedule::RecordedJob& waits = history.jobs[3];
  EXPECT_TRUE(waits.estimated);
  EXPECT_EQ(waits.arrival.lasts, Duration(60s)) << "the median of the queue";
}

TEST(ReplayHistory, DoesNotRepeatWorkLostToAPreemptionWithoutCheckpoints) {
  for (const bool checkpoints : {false, true}) {
    ReplayWorld world;
    auto builder = world.builder();
    Job job = recorded_job(1, 0s, 0s, 100s);
    if (checkpoints) job.spec.checkpoint = SyncedDirectory{"s3://bucket/checkpoints", "/opt"};
    Attempt second = job.attempts[0];
    job.attempts[0].hosts.clear();
    job.attempts[0].preempted = true;
    job.attempts[0].ended = kReplayBegin + 40s;
    second.number = 2;
    second.started = kReplayBegin + 50s;
    job.attempts.push_back(second);
    builder.add(job);
    const schedule::ReplayHistory history = builder.take();
    const schedule::RecordedJob& one = history.jobs[0];
    EXPECT_EQ(one.arrival.lasts, Duration(checkpoints ? 90s : 50s));
    EXPECT_EQ(one.lost, checkpoints ? Duration{} : Duration(40s));
    EXPECT_EQ(one.preemptions, 1u);
    EXPECT_EQ(one.arrival.resumes, checkpoints);
    EXPECT_EQ(one.runs.size(), 2u);
  }
}

TEST(ReplayHistory, LinksJobsToThoseThatTheyDependOn) {
  ReplayWorld world;
  auto builder = world.builder();
  Job array = recorded_job(1, 0s);
  array.key.name = "array";
  array.spec.array.size = 3;
  array.spec.array.sequential = true;
  for (uint32_t index = 0; index < 3; ++index) {
    Job child = child_of(array, index);
    child.attempts = recorded_job(9, 0s, 10s * int64_t(index), 10s * int64_t(index + 1)).attempts;
    child.state = JobState::completed;
    builder.add(child);
  }
  Job after = recorded_job(10, 1s, 40s, 50s);
  after.spec.depends_on = {"array", "absent"};
  builder.add(after);
  Job last = recorded_job(11, 2s, 60s, 70s);
  last.spec.depends_on = {"job-10"};
  builder.add(last);
  builder.add(array);  // arrays are not placed
  const schedule::ReplayHistory history = builder.take();
  ASSERT_EQ(history.jobs.size(), 5u);
  using Numbers = std::vector<JobNumber>;
  EXPECT_EQ(history.jobs[0].arrival.after, Numbers{});
  EXPECT_EQ(history.jobs[1].arrival.after, Numbers{1});
  EXPECT_EQ(history.jobs[2].arrival.after, Numbers{2});
  EXPECT_EQ(history.jobs[3].arrival.after, Numbers{3}) << "the child that ended last";
  EXPECT_EQ(history.jobs[4].arrival.after, Numbers{4});
}

TEST(ReplayHistory, CountsTheUsageOfSharesBeforeThePeriod) {
  ReplayWorld world;
  auto builder = world.builder();
  builder.add(recorded_job(1, -3h, -2h, -1h));
  builder.add(recorded_job(2, 0s, 0s, 60s));
  const schedule::ReplayHistory history = builder.take();
  const auto& shares = history.cluster.queues[kQueueOfOthers].fair->shares;
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0].name, "ann");
  // An hour of 4 vCPU, some of which has decayed.
  EXPECT_GT(shares[0].usage, 0.9 * 3600 * 4);
  EXPECT_LT(shares[0].usage, 3600 * 4);
}

TEST(ReplayHistory, LeavesOutJobsThatCannotBePlaced) {
  ReplayWorld world;
  auto builder = world.builder();
  Job queued = recorded_job(1, 0s, 0s, 60s);
  queued.spec.queue.emplace();
  queued.spec.queue->name = "gone";
  builder.add(queued);
  Job unknown = recorded_job(2, 0s, 0s, 60s);
  unknown.spec.groups[0].instance_type = "ml.unknown";
  builder.add(unknown);
  builder.add(recorded_job(3, 0s, 0s, 60s));
  EXPECT_EQ(builder.take().jobs.size(), 1u);
  EXPECT_EQ(builder.counts().unplaceable, 2u);
}

}  // namespace
}  // namespace trainyard::reconcile
