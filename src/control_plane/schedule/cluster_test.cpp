// Tests plans of simulated clusters over time, with many seeds: reservations are kept, no job
// starves, shares get their part.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "schedule/testing/test_cluster.hpp"
#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

constexpr Duration kLastsMax = 60s;

Duration some_time(SeededRandom& random, Duration max) {
  return 1s * int64_t(1 + random.below(uint64_t(max / 1s)));
}

std::vector<Machine> some_machines(SeededRandom& random) {
  std::vector<Machine> machines;
  for (uint64_t m = 2 + random.below(6); m > 0; --m)
    machines.push_back(machine("box-" + std::to_string(m), double(4 + random.below(3) * 4), 64, 0,
                               "row-" + std::to_string(m % 2)));
  return machines;
}

// Makes jobs whose hosts fit on the largest machine, with at most one host per machine.
TestCluster::Work some_work(SeededRandom& random, Instant arrives) {
  TestCluster::Work work;
  work.job = job(1, uint32_t(1 + (random.chance(3) ? random.below(2) : 0)),
                 double(1 + random.below(4)), double(1 + random.below(16)));
  work.job.name.clear();
  work.job.lasts_max = some_time(random, kLastsMax);
  work.lasts = random.chance(2)
                   ? *work.job.lasts_max
                   : 1s * int64_t(1 + random.below(uint64_t(*work.job.lasts_max / 1s)));
  work.arrives = arrives;
  return work;
}

TestCluster some_cluster(SeededRandom& random, size_t jobs) {
  TestCluster cluster;
  cluster.snapshot.machines = some_machines(random);
  cluster.snapshot.queues = {{"training jobs"}};
  Instant at = kNow;
  for (size_t i = 0; i < jobs; ++i) {
    cluster.add(some_work(random, at));
    if (random.chance(2)) at += some_time(random, 10s);
  }
  return cluster;
}

TEST(Cluster, BackfillNeverDelaysTheFirstWaitingJob) {
  size_t reservations = 0, passed = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SeededRandom random(seed);
    TestCluster cluster = some_cluster(random, 60);
    ASSERT_TRUE(cluster.run()) << "seed " << seed << ": " << cluster.fault();
    std::optional<Instant> latest;
    for (const TestCluster::Record& record : cluster.records()) {
      ASSERT_TRUE(record.started) << "seed " << seed;
      if (latest && *record.started < *latest) ++passed;
      latest = std::max(latest.value_or(*record.started), *record.started);
      if (!record.reserved) continue;
      ++reservations;
      EXPECT_LE(*record.started, *record.reserved)
          << "seed " << seed << ", " << record.work.job.name;
    }
  }
  EXPECT_GT(reservations, 2'000u);
  EXPECT_GT(passed, 1'000u) << "some jobs are backfilled";
}

// Runs the same cluster with and without the jobs behind the first waiting job: where jobs take
// their longest time, it starts at the same instant.
TEST(Cluster, TheFirstWaitingJobStartsAtTheSameInstantWithoutLaterJobs) {
  size_t compared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SeededRandom random(seed);
    const TestCluster drawn = some_cluster(random, 12);
    const auto run = [&](size_t behind) {
      TestCluster cluster;
      cluster.snapshot.machines = drawn.snapshot.machines;
      cluster.snapshot.queues = drawn.snapshot.queues;
      std::optional<domain::JobNumber> first;
      cluster.on_plan = [&](const TestCluster&, const Plan& plan) {
        if (!first && !plan.waits.empty()) first = plan.waits[0].job;
      };
      size_t waiting = 0;
      for (const TestCluster::Record& record : drawn.records()) {
        TestCluster::Work work = record.work;
        work.lasts = *work.job.lasts_max;
        work.arrives = kNow;
        if (waiting++ < behind) cluster.add(work);
      }
      EXPECT_TRUE(cluster.run()) << cluster.fault();
      return std::pair(first, first ? cluster.record(*first).started : std::nullopt);
    };
    const auto with = run(12);
    if (!with.first) continue;
    const auto without = run(*with.first);
    EXPECT_EQ(with, without) << "seed " << seed;
    ++compared;
  }
  EXPECT_GT(compared, 100u);
}

// In one queue in the order of submission, the first job starts at the latest when all running jobs
// have ended. So a job with n ahead of it waits for at most (n + 1) times the longest duration.
TEST(Cluster, NoJobStarves) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    TestCluster cluster = some_cluster(random, 60);
    ASSERT_TRUE(cluster.run()) << "seed " << seed << ": " << cluster.fault();
    for (const TestCluster::Record& record : cluster.records())
      EXPECT_LE(*record.started - record.work.arrives, (record.ahead + 1) * kLastsMax)
          << "seed " << seed;
  }
}

TEST(Cluster, AGangOfTheWholeClusterIsNotStarvedByAStreamOfSmallJobs) {
  for (const bool ends_known : {true, false}) {
    TestCluster cluster;
    for (int m = 0; m < 4; ++m)
      cluster.snapshot.machines.push_back(machine("box-" + std::to_string(m), 4));
    cluster.snapshot.queues = {{"training jobs"}};
    for (int i = 0; i < 600; ++i) {
      TestCluster::Work work{job(1, i == 100 ? 4 : 1, i == 100 ? 4 : 1), 10s, kNow + 500ms * i};
      work.job.name.clear();
      if (ends_known) work.job.lasts_max = 12s;
      cluster.add(work);
    }
    ASSERT_TRUE(cluster.run()) << cluster.fault();
    const TestCluster::Record& gang = cluster.record(101);
    EXPECT_LE(*gang.started - gang.work.arrives, 1s * 12 * (gang.ahead + 1));
    EXPECT_LT(*gang.started, cluster.record(500).started)
        << "it does not wait for the stream to end";
  }
}

// Three shares with different jobs, each of which would fill the cluster alone.
TEST(Cluster, SharesGetTheirPartOverALongRun) {
  constexpr Duration kRun = 8'000s;
  for (uint64_t seed = 0; seed < 2; ++seed) {
    SeededRandom random(seed);
    TestCluster cluster;
    for (int m = 0; m < 12; ++m)
      cluster.snapshot.machines.push_back(machine("box-" + std::to_string(m), 16));
    cluster.snapshot.queues = {{"job queue q"}};
    const std::map<std::string, double> weights = {{"a", 1}, {"b", 0.5}, {"c", 0.25}};
    cluster.snapshot.queues[0].fair = FairShare{};
    cluster.snapshot.queues[0].fair->decay = 600s;
    for (const auto& [name, weight] : weights)
      cluster.snapshot.queues[0].fair->shares.push_back({name, weight, 0});
    // Each share always has waiting jobs: a's are small and long, b's large and short, c's of all
    // kinds.
    const std::map<std::string, std::pair<uint64_t, Duration>> kinds = {
        {"a", {1, 120s}}, {"b", {8, 20s}}, {"c", {4, 60s}}};
    const auto refill = [&](Instant at) {
      std::map<std::string, size_t> waiting;
      for (const WaitingJob& each : cluster.snapshot.waiting) ++waiting[each.share];
      for (const auto& [name, kind] : kinds)
        for (size_t i = waiting[name]; i < 12; ++i) {
          TestCluster::Work work{job(1, 1, double(1 + random.below(kind.first))),
                                 some_time(random, kind.second), at};
          work.job.name.clear();
          work.job.share = name;
          work.job.lasts_max = kind.second;
          cluster.add(work);
        }
    };
    refill(kNow);
    cluster.on_plan = [&](const TestCluster&, const Plan&) { refill(cluster.now() + 1ms); };
    ASSERT_TRUE(cluster.run(kNow + kRun)) << cluster.fault();
    const double parts = 1 / 1.0 + 1 / 0.5 + 1 / 0.25;
    for (const auto& [name, weight] : weights)
      EXPECT_NEAR(cluster.cpu_seconds(name) / cluster.cpu_seconds() * parts * weight, 1, 0.02)
          << "share " << name << ", seed " << seed;
    EXPECT_GT(cluster.cpu_seconds(), 0.9 * 12 * 16 * double(kRun / 1s))
        << "machines are not left idle";
  }
}

// Two slots and very short jobs.
TEST(Cluster, SharesGetTheirPartFromTheStartAndNotOnlyAfterAWindow) {
  TestCluster cluster;
  cluster.snapshot.machines = {machine("box", 2)};
  cluster.snapshot.queues = {{"job queue q"}};
  cluster.snapshot.queues[0].fair = FairShare{};
  cluster.snapshot.queues[0].fair->decay = 600s;
  for (const auto& [name, weight] : {std::pair("much", 1.0), std::pair("little", 3.0)}) {
    cluster.snapshot.queues[0].fair->shares.push_back({name, weight, 0});
    for (int i = 0; i < 60; ++i) {
      TestCluster::Work work{job(1, 1, 1), 300ms, kNow};
      work.job.name.clear();
      work.job.share = name;
      cluster.add(work);
    }
  }
  ASSERT_TRUE(cluster.run(kNow + 10s)) << cluster.fault();
  EXPECT_NEAR(cluster.cpu_seconds("much") / cluster.cpu_seconds(), 0.75, 0.04);
}

// Queues, shares, limits and quotas are random.
TEST(Cluster, AllocatesNothingTwice) {
  size_t preemptions = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SeededRandom random(seed);
    TestCluster cluster;
    cluster.snapshot.machines = some_machines(random);
    cluster.snapshot.limits = {{"vCPU of compute environment small", double(4 + random.below(12))},
                               {"vCPU of compute environment large", double(8 + random.below(24))},
                               {"consumable resource licences", double(2 + random.below(6))}};
    cluster.notice = 1s * int64_t(random.below(3));
    Queue fair{"job queue fair", int64_t(random.below(2))},
        quota{"job queue quota", int64_t(random.below(2))};
    fair.fair = FairShare{{{"a", 0.5}, {"b", 1}}, 100s, random.chance(2) ? 0.3 : 0, {0}};
    for (const char* name : {"a", "b", "c"}) {
      QuotaShare share{name, {{"vcpu", double(4 + random.below(6))}}};
      share.lends = random.chance(2);
      share.borrows = random.chance(2);
      if (random.chance(3)) share.borrow_max = 0.5;
      share.preempts_within = random.chance(2);
      quota.quota_shares.push_back(share);
    }
    cluster.snapshot.queues = {{"training jobs"}, fair, quota};
    Instant at = kNow;
    for (int i = 0; i < 80; ++i) {
      TestCluster::Work work = some_work(random, at);
      WaitingJob& job = work.job;
      if (random.chance(3)) job.lasts_max.reset();
      job.queue = random.below(3);
      job.priority = int64_t(random.below(3));
      if (job.queue > 0) job.share = std::string(1, char('a' + random.below(3)));
      if (job.queue == 2)
        job.demands = {{"vcpu", job.requests[0].share.cpus * job.requests[0].count}};
      if (random.chance(2))
        job.choices = {{"small", {{0, 0, true}}}, {"large", {{1, 0, true}, {2, 1}}}};
      cluster.add(work);
      if (random.chance(2)) at += some_time(random, 10s);
    }
    ASSERT_TRUE(cluster.run()) << "seed " << seed << ": " << cluster.fault();
    size_t unfinished = 0;
    for (const TestCluster::Record& record : cluster.records()) {
      preemptions += record.preemptions;
      unfinished += !record.ended;
    }
    // All jobs that fit into an empty cluster have run.
    for (const Wait& wait : plan(cluster.snapshot, {}, cluster.now()).waits)
      EXPECT_TRUE(wait.reason.str().starts_with("needs "))
          << "seed " << seed << ": " << wait.reason;
    EXPECT_EQ(unfinished, cluster.snapshot.waiting.size()) << "seed " << seed;
  }
  EXPECT_GT(preemptions, 50u);
}

TEST(Cluster, ReturnsLentCapacityOnceThePreemptedJobsHaveEnded) {
  size_t preemption_reason = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SeededRandom random(seed);
    TestCluster cluster;
    cluster.snapshot.machines = {machine("box-1", 1'000)};
    cluster.notice = 2s;
    Queue queue{"job queue q"};
    for (const char* name : {"a", "b", "c"}) {
      QuotaShare share{name, {{"instances", 8}}};
      share.lends = share.borrows = true;
      queue.quota_shares.push_back(share);
    }
    cluster.snapshot.queues = {queue};
    Instant at = kNow;
    for (int i = 0; i < 100; ++i) {
      TestCluster::Work work{job(1, 1, 1), some_time(random, 600s), at};
      work.job.name.clear();
      work.job.share = i % 10 < 8 ? "a" : i % 10 == 8 ? "b" : "c";
      work.job.demands = {{"instances", double(1 + random.below(4))}};
      cluster.add(work);
      at += some_time(random, 20s);
    }
    // A share that needs only its own capacity waits no longer than a preemption takes.
    std::map<std::string, Instant> since;
    cluster.on_plan = [&](const TestCluster& now, const Plan& plan) {
      std::map<std::string, double> used;
      for (const Running& running : now.snapshot.running)
        used[running.share] += running.demands[0].amount;
      for (const Start& start : plan.starts)
        used[now.record(start.job).work.job.share] +=
            now.record(start.job).work.job.demands[0].amount;
      std::map<std::string, bool> entitled;
      for (const Wait& wait : plan.waits) {
        const WaitingJob& job = now.record(wait.job).work.job;
        entitled.try_emplace(job.share,
                             // the first of each share
                             used[job.share] + job.demands[0].amount <= 8);
      }
      for (const auto& [share, is] : entitled) {
        if (!is) {
          since.erase(share);
          continue;
        }
        since.try_emplace(share, now.now());
        EXPECT_LE(now.now() - since[share], 8 * cluster.notice)
            << "seed " << seed << ", share " << share;
      }
      std::erase_if(since, [&](const auto& each) { return !entitled[each.first]; });
      preemption_reason += plan.preemptions.size();
    };
    ASSERT_TRUE(cluster.run()) << "seed " << seed << ": " << cluster.fault();
  }
  EXPECT_GT(preemption_reason, 100u);
}

}  // namespace
}  // namespace trainyard::schedule
