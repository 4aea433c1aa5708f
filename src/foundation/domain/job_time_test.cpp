#include "domain/job_time.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"

namespace trainyard::domain {
namespace {

const Instant kCreated = from_milliseconds(1'763'631'900'000);
Instant at(int64_t seconds) { return kCreated + std::chrono::seconds(seconds); }

// Formats "Queued 10, Starting 2 (1), ..": uses in seconds, with the number of the attempt.
std::string text_of(const Job& job, Instant now) {
  std::string text;
  for (const TimeInterval& interval : time_intervals(job, now)) {
    text += (text.empty() ? "" : ", ") + std::string(to_string(interval.use)) + " " +
            std::to_string((interval.end - interval.begin) / 1s);
    if (interval.attempt > 0) text += " (" + std::to_string(interval.attempt) + ")";
  }
  return text;
}

Attempt attempt(uint32_t number, int64_t started, std::optional<int64_t> ended = {}) {
  Attempt made;
  made.number = number;
  made.started = at(started);
  if (ended) made.ended = at(*ended);
  return made;
}

// Adds phases that follow each other, each with the second of its start.
void add_phases(Job& job, const std::vector<std::pair<Phase, int64_t>>& phases) {
  for (const auto& [phase, second] : phases) {
    if (!job.transitions.empty()) job.transitions.back().end = at(second);
    job.transitions.push_back({phase, "", at(second), {}});
  }
}

// Makes a job that waited 10 s, started 2 s, downloaded 3 s, trained 60 s and uploaded 5 s.
Job completed() {
  Job job;
  job.created = kCreated;
  job.state = JobState::completed;
  job.attempts = {attempt(1, 10, 80)};
  add_phases(job, {{Phase::starting, 0},
                   {Phase::downloading, 12},
                   {Phase::training, 15},
                   {Phase::uploading, 75},
                   {Phase::completed, 80}});
  job.transitions.back().end = at(80);
  return job;
}

TEST(JobTime, CountsEachPhaseOfACompletedJob) {
  const Job job = completed();
  EXPECT_EQ(text_of(job, at(1'000)),
            "Queued 10, Starting 2 (1), Downloading 3 (1), Training 60 (1), Uploading 5 (1)");
  const JobTime time = time_of(job, at(1'000));
  EXPECT_EQ(time.wall, 80s);
  EXPECT_EQ(time.held, 70s);
  EXPECT_DOUBLE_EQ(time.effective_ratio(), 0.75);
  EXPECT_DOUBLE_EQ(time.goodput(), 60.0 / 70);
  EXPECT_TRUE(time.lost_is_known);
}

TEST(JobTime, CountsPhasesOfWaitingAndRunningJobs) {
  Job job;
  job.created = kCreated;
  add_phases(job, {{Phase::starting, 0}});
  EXPECT_EQ(text_of(job, at(30)), "Queued 30");
  EXPECT_EQ(time_of(job, at(30)).effective_ratio(), 0);
  EXPECT_EQ(time_of(job, at(30)).goodput(), 0) << "held no machines";
  EXPECT_EQ(text_of(job, at(-5)), "") << "the clock was set back";
  job.state = JobState::active;
  job.attempts = {attempt(1, 30)};
  EXPECT_EQ(text_of(job, at(31)), "Queued 30, Starting 1 (1)");
  add_phases(job, {{Phase::training, 40}});
  EXPECT_EQ(text_of(job, at(100)), "Queued 30, Starting 10 (1), Training 60 (1)");
}

// Makes a job whose first attempt is interrupted at 50 and ends at 55, and whose second starts at
// 70.
Job interrupted(bool spot) {
  Job job;
  job.created = kCreated;
  job.state = JobState::completed;
  job.attempts = {attempt(1, 10, 55), attempt(2, 70, 120)};
  add_phases(job, {{Phase::starting, 0}, {Phase::training, 20}, {Phase::interrupted, 50}});
  // A spot job is Interrupted until its next attempt; other jobs are Starting at once.
  if (!spot) add_phases(job, {{Phase::starting, 55}});
  add_phases(job, {{Phase::starting, 70}, {Phase::training, 80}, {Phase::completed, 120}});
  if (!spot) {
    job.transitions.erase(job.transitions.begin() + 4);
    job.transitions[3].end = at(80);
  }
  job.transitions.back().end = at(120);
  return job;
}

TEST(JobTime, WorkBeforeAnInterruptionIsLostWithoutCheckpoints) {
  const std::string expected =
      "Queued 10, Starting 10 (1), Lost 30 (1), Interrupted 5 (1), QueuedAgain 15, Starting 10 "
      "(2), Training 40 (2)";
  EXPECT_EQ(text_of(interrupted(true), at(0)), expected);
  EXPECT_EQ(text_of(interrupted(false), at(0)), expected);
  const JobTime time = time_of(interrupted(true), at(0));
  EXPECT_DOUBLE_EQ(time.effective_ratio(), 40.0 / 120);
  EXPECT_DOUBLE_EQ(time.goodput(), 40.0 / 95);
  EXPECT_TRUE(time.lost_is_known);
}

TEST(JobTime, LostTimeIsUnknownWithCheckpoints) {
  Job job = interrupted(true);
  job.spec.checkpoint = SyncedDirectory{"s3://b/c", "/opt/ml/checkpoints"};
  const JobTime time = time_of(job, at(0));
  EXPECT_EQ(time.in(TimeUse::lost), 0s);
  EXPECT_EQ(time.in(TimeUse::training), 70s);
  EXPECT_FALSE(time.lost_is_known);
}

TEST(JobTime, CountsPhasesOfAStoppedJob) {
  Job job;
  job.created = kCreated;
  job.state = JobState::stopped;
  job.attempts = {attempt(1, 10, 50)};
  add_phases(
      job,
      {{Phase::starting, 0}, {Phase::training, 20}, {Phase::stopping, 40}, {Phase::stopped, 50}});
  job.transitions.back().end = at(50);
  EXPECT_EQ(text_of(job, at(99)), "Queued 10, Starting 10 (1), Training 20 (1), Stopping 10 (1)");
}

// For random records, even with instants out of order, there is no gap and no overlap, and the sum
// of the intervals is the wall time.
TEST(JobTime, SumsToTheWallTime) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SeededRandom random(seed);
    const bool ordered = random.chance(2);
    int64_t reached = 0;
    const auto next = [&] {
      reached = ordered ? reached + int64_t(random.below(50)) : int64_t(random.below(500));
      return kCreated + Duration{reached};
    };
    Job job;
    job.created = kCreated;
    job.state = JobState(random.below(kEnumerators<JobState>));
    if (random.chance(3)) job.spec.checkpoint = SyncedDirectory{"s3://b/c", "/c"};
    for (uint64_t i = random.below(4); i > 0; --i) {
      Attempt made;
      made.number = uint32_t(job.attempts.size() + 1);
      made.started = next();
      if (!random.chance(4)) made.ended = next();
      job.attempts.push_back(made);
    }
    reached = 0;
    for (uint64_t i = random.below(8); i > 0; --i) {
      Transition made{Phase(random.below(kEnumerators<Phase>)), "", next(), {}};
      if (!random.chance(4)) made.end = next();
      job.transitions.push_back(made);
    }
    const Instant now = kCreated + Duration{int64_t(random.below(600))};
    const auto intervals = time_intervals(job, now);
    Instant end = job.created;
    Duration sum{};
    for (const TimeInterval& interval : intervals) {
      ASSERT_EQ(interval.begin, end) << "seed " << seed;
      ASSERT_LT(interval.begin, interval.end) << "seed " << seed;
      end = interval.end;
      sum += interval.end - interval.begin;
    }
    const Instant last =
        job.finished() ? (job.transitions.empty()
                              ? job.modified
                              : job.transitions.back().end.value_or(job.transitions.back().start))
                       : now;
    ASSERT_EQ(end, std::max(job.created, last)) << "seed " << seed;
    const JobTime time = time_of(job, now);
    Duration of_uses{};
    for (const Duration each : time.of) of_uses += each;
    ASSERT_EQ(of_uses, time.wall) << "seed " << seed;
    ASSERT_EQ(time.wall, sum) << "seed " << seed;
    ASSERT_LE(time.held, time.wall);
    ASSERT_LE(time.effective_ratio(), 1);
    ASSERT_LE(time.goodput(), 1);
  }
}

}  // namespace
}  // namespace trainyard::domain
