#include "schedule/replay/replay.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One machine of 4 vCPU; job i arrives at i seconds, needs 4 vCPU and lasts 10 s. As recorded, each
// started when the one before it had ended.
ReplayHistory a_queue(size_t jobs) {
  ReplayHistory history{.begin = kNow, .end = kNow + 100s};
  history.cluster.machines = {machine("box", 4)};
  history.cluster.queues = {{"training jobs"}};
  for (size_t i = 0; i < jobs; ++i) {
    RecordedJob one;
    one.arrival.job = job(1, 1, 4);
    one.arrival.lasts = 10s;
    one.arrival.arrives = kNow + 1s * int64_t(i);
    one.user = i % 2 ? "bob" : "ann";
    one.runs = {{kNow + 10s * int64_t(i), kNow + 10s * int64_t(i + 1)}};
    one.ended = true;
    history.jobs.push_back(std::move(one));
  }
  return history;
}

ReplayVariant variant(const std::string& name, std::vector<ReplayChange> changes) {
  return {name, std::move(changes)};
}
ReplayChange more_machines(uint32_t count) {
  return {.kind = ReplayChangeKind::add_machines, .count = count, .machine = share(4)};
}

std::vector<ReplayOutcome> outcomes(ReplayHistory history, std::vector<ReplayVariant> variants) {
  auto replay = Replay::make(std::move(history), std::move(variants));
  EXPECT_TRUE(replay) << replay.error().message;
  if (!replay) return {};
  EXPECT_TRUE((*replay)->advance([] { return true; }));
  EXPECT_EQ((*replay)->progress(), 1);
  return (*replay)->outcomes();
}

std::string error_of(const ReplayChange& change, const Snapshot& cluster) {
  const auto changed = with_changes(cluster, variant("v", {change}));
  if (changed) return "";
  EXPECT_EQ(changed.error().kind, Kind::invalid);
  return changed.error().message;
}

TEST(Replay, RepeatsTheRecordAndSimulatesAddedMachines) {
  const auto out = outcomes(a_queue(3), {variant("two machines", {more_machines(1)})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].name, kReplayRecorded);
  EXPECT_EQ(out[1].name, kReplayAsIs);
  EXPECT_EQ(out[2].name, "two machines");
  for (const size_t same : {0, 1}) {
    // They wait 0, 9 and 18 s.
    EXPECT_EQ(out[same].waits.mean, 9s);
    EXPECT_EQ(out[same].waits.median, 9s);
    EXPECT_EQ(out[same].waits.p95, 18s);
    EXPECT_EQ(out[same].waits.longest, 18s);
    EXPECT_EQ(out[same].makespan, 30s);
    EXPECT_EQ(out[same].unfinished, 0u);
  }
  EXPECT_EQ(out[1].start_error_p95, Duration{});
  // 0, 0 and 8 s.
  EXPECT_EQ(out[2].waits.median, Duration{});
  EXPECT_EQ(out[2].waits.longest, 8s);
  EXPECT_EQ(out[2].makespan, 20s);
  EXPECT_EQ(out[2].cpus, 8);
  EXPECT_TRUE(out[2].complete);
}

TEST(Replay, CountsWaitsByQueueShareAndType) {
  const auto out = outcomes(a_queue(3), {});
  std::map<std::pair<ReplayGrouping, std::string>, WaitSummary> groups;
  for (const WaitGroup& group : out[1].groups) groups[{group.by, group.key}] = group.waits;
  EXPECT_EQ(groups.size(), 4u);
  EXPECT_EQ((groups[{ReplayGrouping::queue, "training jobs"}].jobs), 3u);
  EXPECT_EQ((groups[{ReplayGrouping::share, "ann"}].longest), Duration(18s));
  EXPECT_EQ((groups[{ReplayGrouping::share, "bob"}].longest), Duration(9s));
  EXPECT_EQ((groups[{ReplayGrouping::instance_type, "ml.some"}].jobs), 3u);
}

TEST(Replay, CountsTheUseOfMachinesOverTime) {
  const auto out = outcomes(a_queue(3), {});
  for (const ReplayOutcome& outcome : out) {
    ASSERT_EQ(outcome.cpus_used.size(), kReplayBuckets);
    double cpu_seconds = 0;
    for (const double cpus : outcome.cpus_used) cpu_seconds += cpus * 100 / double(kReplayBuckets);
    EXPECT_NEAR(cpu_seconds, 3 * 10 * 4, 1e-6);
    EXPECT_NEAR(outcome.cpus_used.front(), 4, 1e-9);
    EXPECT_NEAR(outcome.cpus_used.back(), 0, 1e-9);
  }
}

TEST(Replay, DoesNotCountJobsFromBeforeThePeriodThatHoldMachines) {
  ReplayHistory history = a_queue(2);
  RecordedJob& first = history.jobs[0];
  first.arrival.arrives = first.runs[0].began = kNow - 5s;
  first.runs[0].ended = kNow + 7s;
  first.arrival.lasts = 12s;
  first.counts = false;
  first.running = running("", "box", 4);
  first.running->started = kNow - 5s;
  history.jobs[1].runs = {{kNow + 7s, kNow + 17s}};
  const auto out = outcomes(
      std::move(history),
      {variant("other machine",
               {{.kind = ReplayChangeKind::remove_machine, .name = "box"}, more_machines(1)})});
  EXPECT_EQ(out[0].waits.jobs, 1u);
  EXPECT_EQ(out[0].waits.longest, 6s);
  EXPECT_EQ(out[1].waits.longest, 6s);
  // Its machine is gone, so it runs for its whole time again.
  EXPECT_EQ(out[2].waits.longest, 11s);
}

TEST(Replay, MakesJobsWaitForTheirDependencies) {
  ReplayHistory history = a_queue(2);
  history.cluster.machines.push_back(machine("free", 4));
  history.jobs[1].arrival.after = {1, 2, 99};  // itself and an unknown one do not count
  const auto out = outcomes(std::move(history), {});
  EXPECT_EQ(out[1].waits.longest, Duration{}) << "it depends on the first, which had ended";
  EXPECT_EQ(out[1].makespan, 20s);
}

TEST(Replay, CompressesArrivals) {
  const auto out = outcomes(
      a_queue(3), {variant("fast", {{.kind = ReplayChangeKind::set_submit_rate, .value = 2}}),
                   variant("slow", {{.kind = ReplayChangeKind::set_submit_rate, .value = 0.1}})});
  EXPECT_EQ(out[2].waits.longest, 19s) << "the last arrives after 1 s";
  EXPECT_EQ(out[3].waits.longest, Duration{}) << "they arrive every 10 s";
}

TEST(Replay, CountsJobsThatDoNotStart) {
  ReplayHistory history = a_queue(2);
  history.jobs[0].arrival.lasts.reset();
  history.jobs[0].ended = false;
  history.jobs[1].runs.clear();
  history.jobs[1].ended = false;
  const auto out = outcomes(std::move(history), {});
  for (const ReplayOutcome& outcome : out) {
    EXPECT_EQ(outcome.waits.not_started, 1u);
    EXPECT_EQ(outcome.waits.longest, 99s) << "until the end of the period";
    EXPECT_EQ(outcome.unfinished, 2u);
  }
}

TEST(Replay, AlternatesBetweenUsersWithAChangeToFairShare) {
  ReplayHistory history = a_queue(8);
  for (size_t i = 0; i < 8; ++i) {
    history.jobs[i].arrival.arrives = kNow;
    history.jobs[i].user = i < 6 ? "ann" : "bob";
  }
  const auto out =
      outcomes(std::move(history), {variant("fair", {{.kind = ReplayChangeKind::set_policy,
                                                      .name = "training jobs",
                                                      .policy = "fair"}})});
  const auto longest = [](const ReplayOutcome& outcome, const std::string& user) {
    for (const WaitGroup& group : outcome.groups)
      if (group.by == ReplayGrouping::share && group.key == user) return group.waits.longest;
    return Duration::max();
  };
  EXPECT_EQ(longest(out[1], "bob"), 70s);
  EXPECT_LE(longest(out[2], "bob"), 40s);
  EXPECT_EQ(longest(out[2], "ann"), 70s);
}

TEST(Replay, NamesTheMostAffectedJobs) {
  auto replay = Replay::make(a_queue(3), {variant("two machines", {more_machines(1)})});
  ASSERT_TRUE(replay);
  EXPECT_FALSE((*replay)->advance([] { return false; }));
  ASSERT_TRUE((*replay)->advance([] { return true; }));
  EXPECT_EQ((*replay)->most_affected(10), (std::vector<size_t>{2, 1}));
  EXPECT_EQ((*replay)->most_affected(1), (std::vector<size_t>{2}));
  EXPECT_TRUE((*replay)->most_affected(0).empty());
}

TEST(Replay, StopsAtTheLimitOfPlansAndMarksTheOutcomeIncomplete) {
  auto replay = Replay::make(a_queue(20), {}, 5);
  ASSERT_TRUE(replay);
  ASSERT_TRUE((*replay)->advance([] { return true; }));
  const ReplayOutcome& cut = (*replay)->outcomes()[1];
  EXPECT_FALSE(cut.complete);
  EXPECT_LT(cut.reached, kNow + 10s);
  EXPECT_EQ(cut.unfinished, 20u);
}

TEST(Replay, RejectsPeriodsAndVariantsBeyondItsLimits) {
  ReplayHistory backwards = a_queue(1);
  backwards.end = backwards.begin;
  EXPECT_FALSE(Replay::make(std::move(backwards), {}));
  std::vector<ReplayVariant> thousand;
  for (int i = 0; i < 1'000; ++i) thousand.push_back(variant("v" + std::to_string(i), {}));
  EXPECT_FALSE(Replay::make(a_queue(1), thousand));
  EXPECT_FALSE(Replay::make(a_queue(1), {variant("a", {}), variant("a", {})}));
  EXPECT_FALSE(Replay::make(a_queue(1), {variant(std::string(kReplayAsIs), {})}));
  EXPECT_FALSE(Replay::make(a_queue(1), {variant("", {})}));
  EXPECT_FALSE(Replay::make(a_queue(1), {variant(std::string(129, 'x'), {})}));
  EXPECT_FALSE(Replay::make(
      a_queue(1),
      {variant("v", std::vector<ReplayChange>(kReplayChangesMax + 1, more_machines(1)))}));
  ReplayHistory many = a_queue(1);
  many.jobs.resize(kReplayJobsMax + 1);
  EXPECT_EQ(Replay::make(std::move(many), {}).error().kind, Kind::exhausted);
  // Names may contain any byte.
  std::string bytes;
  for (int byte = 1; byte < 128; ++byte) bytes += char(byte);
  EXPECT_EQ(outcomes(a_queue(1), {variant(bytes, {})})[2].name, bytes);
}

TEST(ReplayChanges, RejectInvalidNumbersAndUnknownNames) {
  Snapshot cluster;
  cluster.machines = {machine("box", 4)};
  cluster.queues = {{"training jobs"}, {"job queue nightly"}};
  cluster.limits = {{"vCPU of compute environment small", 4}, {"consumable resource small", 2}};
  using enum ReplayChangeKind;
  for (const double value : {kNan, kInfinity, -1.0, 1e308, 0.0})
    for (const ReplayChangeKind kind : {set_weight, set_submit_rate})
      EXPECT_NE(error_of({.kind = kind, .name = "nightly", .value = value}, cluster), "") << value;
  for (const double value : {kNan, kInfinity, -1.0, 1e308, 0.5})
    EXPECT_NE(error_of({.kind = set_priority, .name = "nightly", .value = value}, cluster), "");
  for (const double value : {kNan, kInfinity, -1.0, 1e308})
    EXPECT_NE(
        error_of({.kind = set_limit, .name = "vCPU of compute environment small", .value = value},
                 cluster),
        "");
  for (const Share& size : {share(0), share(-1), share(kNan), share(1e308), share(1, -1),
                            share(1, 1, -1), Share{1, std::numeric_limits<int64_t>::max(), 0},
                            Share{1, 1, std::numeric_limits<int64_t>::min()}})
    EXPECT_NE(error_of({.kind = add_machines, .machine = size}, cluster), "");
  for (const uint32_t count : {0u, 1'001u, std::numeric_limits<uint32_t>::max()})
    EXPECT_NE(error_of(more_machines(count), cluster), "");
  EXPECT_FALSE(with_changes(cluster, variant("v", {more_machines(600), more_machines(600)})));
  EXPECT_EQ(error_of({.kind = remove_machine, .name = "bx"}, cluster),
            "variant v: unknown machine 'bx' in this period: known are box");
  EXPECT_EQ(error_of({.kind = set_policy, .name = "dayly", .policy = "fifo"}, cluster),
            "variant v: unknown queue 'dayly' in this period: known are training jobs, job queue "
            "nightly");
  EXPECT_NE(error_of({.kind = set_policy, .name = "nightly", .policy = "lottery"}, cluster), "");
  EXPECT_NE(error_of({.kind = set_policy, .name = "nightly", .policy = "quota"}, cluster), "");
  EXPECT_NE(error_of({.kind = set_weight, .name = "nightly", .share = "a", .value = 1}, cluster),
            "");
  EXPECT_EQ(error_of({.kind = set_limit, .name = "small", .value = 1}, cluster),
            "variant v: ambiguous limit 'small': it may be vCPU of compute environment small or "
            "consumable resource small");
  EXPECT_NE(error_of({.kind = remove_machine, .name = std::string(1'000, 'x')}, cluster), "");
}

TEST(ReplayChanges, ChangeTheCluster) {
  Snapshot cluster;
  cluster.machines = {machine("box", 4), machine("box-1", 4)};
  cluster.queues = {{"training jobs"}, {"job queue nightly"}};
  cluster.limits = {{"vCPU of compute environment small", 4}};
  using enum ReplayChangeKind;
  ReplayChange boxes = more_machines(2);
  boxes.name = "box";
  const auto changed = with_changes(
      cluster, variant("v", {boxes,
                             {.kind = remove_machine, .name = "box"},
                             {.kind = set_policy, .name = "nightly", .policy = "fair"},
                             {.kind = set_weight, .name = "nightly", .share = "a", .value = 0.5},
                             {.kind = set_priority, .name = "nightly", .value = 7},
                             {.kind = set_limit, .name = "small", .value = 9}}));
  ASSERT_TRUE(changed) << changed.error().message;
  std::vector<std::string> names;
  for (const Machine& each : changed->cluster.machines) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"box-1", "box-2", "box-3"}));
  EXPECT_TRUE(changed->removed.contains("box"));
  const Queue& nightly = changed->cluster.queues[1];
  ASSERT_TRUE(nightly.fair);
  EXPECT_EQ(nightly.fair->shares[0].weight, 0.5);
  EXPECT_EQ(nightly.priority, 7);
  EXPECT_EQ(changed->cluster.limits[0].total, 9);
  EXPECT_TRUE(changed->made_fair.contains(1));
}

}  // namespace
}  // namespace trainyard::schedule
