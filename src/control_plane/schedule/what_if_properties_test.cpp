// Tests that plan() keeps what what_if() says, over many small clusters.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "schedule/projection.hpp"
#include "schedule/testing/test_cluster.hpp"
#include "schedule/testing/test_snapshots.hpp"
#include "schedule/what_if.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

constexpr uint64_t kSeeds = 1'000;

struct RandomCase {
  Snapshot snapshot;
  WhatIfQuestion question;
};

void add_running(SeededRandom& random, Snapshot& snapshot) {
  for (size_t m = 0; m < snapshot.machines.size(); ++m)
    for (uint64_t h = random.below(3); h > 0; --h) {
      Running made = running("training-job/r" + std::to_string(snapshot.running.size()),
                             snapshot.machines[m].name, 0);
      made.job = 1'000 + snapshot.running.size();
      made.hosts[0].share = {snapshot.machines[m].total.cpus / 2,
                             snapshot.machines[m].total.memory_bytes / 4, 0};
      made.queue = random.below(snapshot.queues.size());
      made.started = kNow - 1s * int64_t(random.below(100));
      if (!snapshot.limits.empty() && random.chance(2)) made.needs = {{0, 0, true, false}};
      if (!random.chance(3)) made.ends_by = kNow + 1s * int64_t(1 + random.below(100));
      snapshot.running.push_back(std::move(made));
    }
}

void add_waiting(SeededRandom& random, Snapshot& snapshot) {
  for (uint64_t number = 1 + random.below(8); number > 0; --number) {
    WaitingJob made = job(snapshot.waiting.size() + 1, uint32_t(1 + random.below(4)),
                          double(1 + random.below(24)) / 2, double(1 + random.below(32)) / 2);
    made.queue = random.below(snapshot.queues.size());
    made.priority = int64_t(random.below(4));
    if (!snapshot.limits.empty() && random.chance(2))
      made.choices = {{"small", {{0, 0, true, false}}}};
    if (!random.chance(3)) made.lasts_max = 1s * int64_t(1 + random.below(100));
    snapshot.waiting.push_back(std::move(made));
  }
}

RandomCase random_case(uint64_t seed) {
  SeededRandom random(seed);
  RandomCase made{cluster({}, {}, {}), {}};
  Snapshot& snapshot = made.snapshot;
  for (uint64_t m = 1 + random.below(4); m > 0; --m)
    snapshot.machines.push_back(machine("box-" + std::to_string(m), double(1 + random.below(16)),
                                        double(1 + random.below(64))));
  if (random.chance(2)) snapshot.queues.push_back({.name = "fast", .priority = 5});
  if (random.chance(2)) snapshot.queues[0].fair = FairShare{.decay = 60s};
  if (random.chance(2)) snapshot.limits = {{.name = "vCPU of small"}};
  add_running(random, snapshot);
  for (Limit& limit : snapshot.limits) {
    limit.total = double(random.below(16));
    for (const Running& each : snapshot.running)
      if (!each.needs.empty()) limit.total += each.hosts[0].share.cpus;
  }
  add_waiting(random, snapshot);
  const WaitingJob& requested = snapshot.waiting[random.below(snapshot.waiting.size())];
  made.question.job = requested.job;
  for (uint32_t count = requested.requests[0].count; count > 1; --count) {
    WaitingJob smaller = requested;
    smaller.requests[0].count = count - 1;
    made.question.variants.push_back({{.kind = ChangeKind::shrink_gang,
                                       .from = double(requested.requests[0].count),
                                       .to = double(count - 1)},
                                      smaller});
  }
  return made;
}

bool starts(const Plan& plan, domain::JobNumber job) {
  return std::ranges::find(plan.starts, job, &Start::job) != plan.starts.end();
}

TEST(WhatIfSeeds, TheChangedSnapshotStartsTheJobWhereTheAnswerIsNow) {
  size_t now = 0, later = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomCase made = random_case(seed);
    const WhatIf found = what_if(made.snapshot, {}, kNow, made.question);
    ASSERT_EQ(found.reason.empty(), starts(plan(made.snapshot, {}, kNow), made.question.job));
    for (const WhatIfAnswer& answer : found.answers) {
      const Snapshot changed = with_change(made.snapshot, made.question, answer.change);
      const Plan planned = plan(changed, {}, kNow);
      ASSERT_EQ(fault_of(changed, planned), "") << "seed " << seed;
      ASSERT_EQ(starts(planned, made.question.job), answer.starts == kNow)
          << "seed " << seed << ", kind " << int(answer.change.kind);
      ++(answer.starts == kNow ? now : later);
      if (found.starts) {
        ASSERT_LT(answer.starts, *found.starts) << "seed " << seed;
      }
    }
    ASSERT_TRUE(std::ranges::is_sorted(found.answers, {}, &WhatIfAnswer::starts));
    ASSERT_EQ(what_if(made.snapshot, {}, kNow, made.question).answers.size(), found.answers.size());
  }
  EXPECT_GT(now, kSeeds / 2) << "the clusters are too easy or too hard";
  EXPECT_GT(later, kSeeds / 50);
}

// In the simulated cluster each job takes its longest time.
TEST(WhatIfSeeds, TheSimulationStartsTheJobAtItsProjectedStart) {
  size_t checked = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomCase made = random_case(seed);
    PlanBudget budget(1'000, 1'000'000);
    const auto projected = projected_start(made.snapshot, {}, kNow, made.question.job, {}, budget);
    if (!projected || made.snapshot.queues[0].fair) continue;
    Snapshot snapshot = made.snapshot;
    Instant now = kNow;
    for (bool started = false; !started;) {
      const Plan planned = plan(snapshot, {}, now);
      started = starts(planned, made.question.job);
      if (started) break;
      for (const Start& start : planned.starts) {
        const auto job = std::ranges::find(snapshot.waiting, start.job, &WaitingJob::job);
        Running running;
        running.job = start.job;
        running.hosts = start.hosts;
        running.queue = job->queue;
        if (!job->choices.empty()) running.needs = job->choices.front().needs;
        if (job->lasts_max) running.ends_by = now + *job->lasts_max;
        running.started = now;
        snapshot.running.push_back(running);
        snapshot.waiting.erase(job);
      }
      Instant next = Instant::max();
      for (const Running& running : snapshot.running)
        if (running.ends_by) next = std::min(next, *running.ends_by);
      ASSERT_LE(next, *projected) << "seed " << seed << ": it starts later than projected";
      now = next;
      std::erase_if(snapshot.running, [&](const Running& running) {
        return running.ends_by && *running.ends_by <= now;
      });
    }
    EXPECT_EQ(now, *projected) << "seed " << seed;
    ++checked;
  }
  EXPECT_GT(checked, kSeeds / 10);
}

}  // namespace
}  // namespace trainyard::schedule
