// Tests what holds for replays of many random histories.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "schedule/replay/replay.hpp"
#include "schedule/testing/test_cluster.hpp"
#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

constexpr uint64_t kReplaySeeds = 1'000;

Duration some_seconds(SeededRandom& random, uint64_t max) {
  return 1s * int64_t(1 + random.below(max));
}

// Jobs of several queues, with limits, quotas, preemptions and fair share.
void fill(TestCluster& cluster, SeededRandom& random, bool queues) {
  for (uint64_t m = 1 + random.below(5); m > 0; --m)
    cluster.snapshot.machines.push_back(
        machine("box-" + std::to_string(m), double(4 + random.below(3) * 4), 64));
  cluster.snapshot.queues = {{"training jobs"}};
  cluster.snapshot.limits = {{"vCPU of compute environment small", double(4 + random.below(12))}};
  cluster.notice = 1s * int64_t(random.below(3));
  if (queues) {
    Queue fair{"job queue fair", int64_t(random.below(2))}, quota{"job queue quota"};
    fair.fair = FairShare{{{"a", 0.5, 0}, {"b", 1, 0}}, 100s};
    for (const char* name : {"a", "b"})
      quota.quota_shares.push_back({name, {{"vcpu", double(4 + random.below(6))}}, true, true});
    cluster.snapshot.queues.push_back(fair);
    cluster.snapshot.queues.push_back(quota);
  }
  Instant at = kNow;
  for (int i = 0; i < 40; ++i) {
    TestCluster::Work work;
    work.job = job(1, uint32_t(1 + (random.chance(3) ? 1 : 0)), double(1 + random.below(4)));
    work.job.name.clear();
    work.lasts = some_seconds(random, 60);
    if (!random.chance(3)) work.job.lasts_max = *work.lasts + some_seconds(random, 30);
    work.arrives = at;
    work.resumes = random.chance(2);
    work.job.queue = random.below(cluster.snapshot.queues.size());
    if (work.job.queue > 0) work.job.share = random.chance(2) ? "a" : "b";
    if (work.job.queue == 2)
      work.job.demands = {{"vcpu", work.job.requests[0].share.cpus * work.job.requests[0].count}};
    if (random.chance(3)) work.job.choices = {{"small", {{0, 0, true}}}};
    if (i > 0 && random.chance(6)) work.after = {1 + random.below(uint64_t(i))};
    cluster.add(work);
    if (random.chance(2)) at += some_seconds(random, 10);
  }
}

RecordedJob recorded(const Simulation::Record& record) {
  RecordedJob job;
  job.arrival = record.work;
  job.user = record.work.job.share;
  job.ended = record.ended.has_value();
  job.preemptions = record.preemptions;
  // A preempted job has several runs; only where the first begins and the last ends is compared.
  if (record.started) job.runs = {{*record.started, record.ended.value_or(*record.started)}};
  return job;
}

ReplayHistory history_of(const TestCluster& cluster, const Snapshot& before) {
  ReplayHistory history{.begin = kNow, .end = kNow + 1h, .cluster = before};
  history.notice = cluster.notice;
  for (const Simulation::Record& record : cluster.records())
    history.jobs.push_back(recorded(record));
  return history;
}

std::vector<ReplayOutcome> replayed(ReplayHistory history, std::vector<ReplayVariant> variants) {
  auto replay = Replay::make(std::move(history), std::move(variants));
  EXPECT_TRUE(replay) << replay.error().message;
  // In slices of a few plans.
  for (size_t calls = 0; !(*replay)->advance([&] { return ++calls % 7 != 0; });) {
    EXPECT_GE((*replay)->progress(), 0);
    EXPECT_LE((*replay)->progress(), 1);
  }
  return (*replay)->outcomes();
}

TEST(ReplayProperties, AReplayWithoutChangesHasTheRecordedStarts) {
  size_t compared = 0, preemptions = 0;
  for (uint64_t seed = 0; seed < kReplaySeeds; ++seed) {
    SeededRandom random(seed);
    TestCluster cluster;
    fill(cluster, random, true);
    const Snapshot before = cluster.snapshot;
    ASSERT_TRUE(cluster.run()) << "seed " << seed << ": " << cluster.fault();
    const auto out = replayed(history_of(cluster, before), {});
    ASSERT_EQ(out.size(), 2u);
    for (size_t at = 0; at < cluster.records().size(); ++at) {
      const Simulation::Record& record = cluster.record(at + 1);
      std::optional<Duration> wait;
      if (record.started) wait = *record.started - *record.waits_since;
      ASSERT_EQ(out[1].wait_of[at], wait) << "seed " << seed << ", job " << at + 1;
      compared += wait.has_value();
      preemptions += record.preemptions;
    }
    size_t all = 0;
    for (const Simulation::Record& record : cluster.records()) all += record.preemptions;
    ASSERT_EQ(out[1].preemptions, all) << "seed " << seed;
  }
  EXPECT_GT(compared, 30'000u);
  EXPECT_GT(preemptions, 100u);
}

// The period begins amid the history: what ran then is placed as it was.
TEST(ReplayProperties, APeriodThatBeginsLaterHasTheRecordedStarts) {
  size_t compared = 0, held = 0;
  for (uint64_t seed = 0; seed < kReplaySeeds; ++seed) {
    SeededRandom random(seed);
    TestCluster cluster;
    fill(cluster, random, false);
    const Snapshot before = cluster.snapshot;
    const Instant begin = kNow + 60s + 500ms;
    ASSERT_TRUE(cluster.run(begin)) << cluster.fault();
    const std::vector<Running> running = cluster.snapshot.running;
    ASSERT_TRUE(cluster.run()) << cluster.fault();
    ReplayHistory history{.begin = begin, .end = begin + 1h, .cluster = before};
    std::map<domain::JobNumber, size_t> position;
    std::vector<domain::JobNumber> numbers;
    const auto add = [&](domain::JobNumber number, RecordedJob job) {
      job.counts = job.arrival.arrives >= begin;
      numbers.push_back(number);
      position[number] = numbers.size();
      history.jobs.push_back(std::move(job));
    };
    for (const Running& each : running) {
      RecordedJob job = recorded(cluster.record(each.job));
      job.running = each;
      add(each.job, std::move(job));
    }
    for (size_t number = 1; number <= cluster.records().size(); ++number) {
      const Simulation::Record& record = cluster.record(number);
      if (position.contains(number) || (record.ended && *record.ended <= begin)) continue;
      add(number, recorded(record));
    }
    for (RecordedJob& job : history.jobs) {
      std::vector<domain::JobNumber> after;
      for (const domain::JobNumber other : job.arrival.after)
        if (position.contains(other)) after.push_back(position[other]);
      job.arrival.after = after;
    }
    const auto out = replayed(std::move(history), {});
    for (size_t at = 0; at < numbers.size(); ++at) {
      const Simulation::Record& record = cluster.record(numbers[at]);
      if (record.arrives < begin || !record.started) continue;
      ASSERT_EQ(out[1].wait_of[at], *record.started - *record.waits_since)
          << "seed " << seed << ", job " << numbers[at];
      ++compared;
    }
    held += running.size();
  }
  EXPECT_GT(compared, 10'000u);
  EXPECT_GT(held, 1'000u);
}

// With jobs of one slot in the order of submission, a machine more delays no job. (With gangs,
// backfill or shares it may: that is why one replays.)
TEST(ReplayProperties, AMachineMoreDelaysNoJobOfOneSlot) {
  size_t sooner = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SeededRandom random(seed);
    ReplayHistory history{.begin = kNow, .end = kNow + 1h};
    for (uint64_t m = 1 + random.below(3); m > 0; --m)
      history.cluster.machines.push_back(machine("box-" + std::to_string(m), 1));
    history.cluster.queues = {{"training jobs"}};
    Instant at = kNow;
    for (int i = 0; i < 40; ++i) {
      RecordedJob one;
      one.arrival.job = job(1, 1, 1);
      one.arrival.lasts = some_seconds(random, 60);
      one.arrival.arrives = at;
      if (random.chance(2)) at += some_seconds(random, 20);
      history.jobs.push_back(std::move(one));
    }
    const auto out = replayed(
        std::move(history),
        {{"more", {{.kind = ReplayChangeKind::add_machines, .machine = share(1, 1'000)}}}});
    for (size_t job = 0; job < 40; ++job) {
      ASSERT_LE(*out[2].wait_of[job], *out[1].wait_of[job]) << "seed " << seed;
      sooner += *out[2].wait_of[job] < *out[1].wait_of[job];
    }
    for (const double used : out[2].cpus_used) ASSERT_LE(used, out[2].cpus + 1e-9);
  }
  EXPECT_GT(sooner, 1'000u);
}

}  // namespace
}  // namespace trainyard::schedule
