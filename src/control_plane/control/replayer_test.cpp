#include "control/replayer.hpp"

#include <gtest/gtest.h>

#include "control/testing/test_cluster.hpp"

namespace trainyard::control {
namespace {

using domain::HostState;
using test::TestCluster;

const ReplayCaller kOwner{.principal = "owner",
                          .may_see = [](const domain::JobKey&) { return true; }};

// Three jobs, each of which takes the whole machine for a minute.
struct ReplayedCluster : TestCluster {
  Instant began = clock.now();

  ReplayedCluster() {
    const std::vector<std::string> names = {"a", "b", "c"};
    for (const std::string& name : names) {
      EXPECT_TRUE(create(job(name, 1, "ml.m5.2xlarge")));
      clock.advance(1s);
    }
    for (const std::string& name : names) {
      walk(name, 0, HostState::running);
      clock.advance(60s);
      walk(name, 0, HostState::finished);
      launcher.agents.clear();  // its agent has exited
      run();
    }
  }

  ReplayRequest request(std::vector<schedule::ReplayVariant> variants = {}) {
    return {.region = "us-east-1",
            .begin = began - 1s,
            .end = clock.now(),
            .variants = std::move(variants)};
  }
};

schedule::ReplayVariant machine_more() {
  return {"a machine more",
          {{.kind = schedule::ReplayChangeKind::add_machines,
            .name = "new",
            .machine = {8, int64_t{32} << 30, 0}}}};
}

TEST(Replayer, ReplaysTheRecordAndItsVariants) {
  ReplayedCluster cluster;
  const auto report = cluster.control->start_replay(kOwner, cluster.request({machine_more()}));
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_TRUE(report->done);
  EXPECT_EQ(report->jobs, 3u);
  EXPECT_EQ(report->counted, 3u);
  ASSERT_EQ(report->outcomes.size(), 3u);
  const auto& recorded = report->outcomes[0].waits;
  const auto& as_it_is = report->outcomes[1].waits;
  const auto& more = report->outcomes[2].waits;
  EXPECT_NEAR(double(recorded.longest.count()), 120'000, 5'000);
  EXPECT_NEAR(double(as_it_is.longest.count()), double(recorded.longest.count()), 2'000);
  EXPECT_EQ(report->outcomes[1].unfinished, 0u);
  EXPECT_LT(more.longest, recorded.longest);
  EXPECT_EQ(more.median, Duration{});
  ASSERT_FALSE(report->affected.empty());
  EXPECT_EQ(report->affected[0].key.name, "b") << "with the change it does not wait";
  EXPECT_EQ(report->affected[0].waits.size(), 3u);
  const auto again = cluster.control->resume_replay(kOwner, report->id);
  EXPECT_EQ(again.error().kind, Kind::not_found) << "a report is returned once";
}

TEST(Replayer, NamesNoJobThatTheCallerMayNotSee) {
  ReplayedCluster cluster;
  const ReplayCaller guest{.principal = "guest",
                           .may_see = [](const domain::JobKey& key) { return key.name == "c"; }};
  const auto report = cluster.control->start_replay(guest, cluster.request({machine_more()}));
  ASSERT_TRUE(report) << report.error().message;
  for (const AffectedJob& job : report->affected) EXPECT_EQ(job.key.name, "c");
  EXPECT_EQ(report->outcomes[0].waits.jobs, 3u) << "hidden jobs still count";
}

TEST(Replayer, RejectsInvalidPeriodsAndChanges) {
  ReplayedCluster cluster;
  const auto kind_of = [&](ReplayRequest request) {
    const auto report = cluster.control->start_replay(kOwner, std::move(request));
    return report ? Kind::internal : report.error().kind;
  };
  ReplayRequest backwards = cluster.request();
  std::swap(backwards.begin, backwards.end);
  EXPECT_EQ(kind_of(backwards), Kind::invalid);
  ReplayRequest long_ago = cluster.request();
  long_ago.begin = from_milliseconds(0);
  EXPECT_EQ(kind_of(long_ago), Kind::invalid);
  EXPECT_EQ(kind_of(cluster.request(std::vector<schedule::ReplayVariant>(1'000))), Kind::invalid);
  schedule::ReplayVariant unknown{
      "v", {{.kind = schedule::ReplayChangeKind::remove_machine, .name = "absent"}}};
  EXPECT_EQ(kind_of(cluster.request({unknown})), Kind::invalid);
  EXPECT_EQ(kind_of(cluster.request()), Kind::internal) << "an error drops the replay";
}

TEST(Replayer, WorksInSlicesOneReplayAtATime) {
  ReplayedCluster cluster;
  // The clock advances whenever it is read, so that a slice has a few plans.
  class HastyClock final : public Clock {
   public:
    Instant now() override { return kTestClockStart + 1h; }
    std::chrono::nanoseconds monotonic() override { return time_ += 300ms; }
    void skip() { time_ += kReplayIdleMax; }

   private:
    std::chrono::nanoseconds time_{};
  } clock;
  Explainer explainer(cluster.settings);
  reconcile::Snapshot snapshot;
  snapshot.machines = cluster.launcher.the_machines;
  explainer.put(std::move(snapshot), clock.now());
  SeededRandom random(1);
  Replayer replayer(cluster.settings, *cluster.control, explainer, clock, random);
  const auto first = replayer.start(kOwner, cluster.request());
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE(first->done);
  const ReplayCaller other{.principal = "other", .may_see = kOwner.may_see};
  EXPECT_EQ(replayer.start(other, cluster.request()).error().kind, Kind::exhausted);
  EXPECT_EQ(replayer.resume(other, first->id).error().kind, Kind::not_found);
  EXPECT_EQ(replayer.resume(kOwner, "0123").error().kind, Kind::not_found);
  double progress = first->progress;
  size_t calls = 0;
  for (;; ++calls) {
    const auto next = replayer.resume(kOwner, first->id);
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_GE(next->progress, progress);
    progress = next->progress;
    if (next->done) break;
  }
  EXPECT_EQ(progress, 1);
  EXPECT_GE(calls, 1u) << "the first call was not the last";

  const auto second = replayer.start(kOwner, cluster.request());
  ASSERT_TRUE(second);
  replayer.drop_idle();
  EXPECT_TRUE(replayer.resume(kOwner, second->id)) << "it was resumed just now";
  clock.skip();
  replayer.drop_idle();
  EXPECT_EQ(replayer.resume(kOwner, second->id).error().kind, Kind::not_found);
  EXPECT_TRUE(replayer.start(other, cluster.request()));
}

TEST(Replayer, FailsBeyondItsTimeLimit) {
  ReplayedCluster cluster;
  class SlowClock final : public Clock {
   public:
    Instant now() override { return kTestClockStart + 1h; }
    std::chrono::nanoseconds monotonic() override { return time_ += 40s; }

   private:
    std::chrono::nanoseconds time_{};
  } clock;
  Explainer explainer(cluster.settings);
  explainer.put({}, clock.now());
  SeededRandom random(1);
  Replayer replayer(cluster.settings, *cluster.control, explainer, clock, random);
  auto report = replayer.start(kOwner, cluster.request());
  for (int calls = 0; report && !report->done && calls < 100; ++calls)
    report = replayer.resume(kOwner, report->id);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, Kind::exhausted);
}

}  // namespace
}  // namespace trainyard::control
