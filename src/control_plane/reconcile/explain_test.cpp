#include "reconcile/explain.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace trainyard::reconcile {
namespace {

using namespace domain;

const Instant kExplainNow = from_milliseconds(1'763'631'900'000);
const ExplainRights kAll{.may_see = [](const Job&) { return true; },
                         .may_use = [](const JobKey&) { return true; }};
const ExplainRights kNone{.may_see = [](const Job&) { return false; },
                          .may_use = [](const JobKey&) { return false; }};

std::shared_ptr<Job> made(JobNumber number, const std::string& name, uint32_t hosts = 1,
                          const std::string& who = "ana") {
  auto job = std::make_shared<Job>();
  job->number = number;
  job->key = {"eu-west-1", name};
  job->spec.groups = {{"homogeneousCluster", "ml.m5.xlarge", hosts}};  // 4 vCPU
  job->spec.principal = who;
  job->created = kExplainNow - 1min;
  job->transitions = {{Phase::starting, "", job->created, {}}};
  return job;
}

std::shared_ptr<Job> run(std::shared_ptr<Job> job, int64_t max_runtime_seconds = 3600) {
  job->state = JobState::active;
  job->spec.max_runtime_seconds = max_runtime_seconds;
  Attempt attempt;
  attempt.state = AttemptState::running;
  attempt.started = kExplainNow - 1min;
  attempt.training_started = attempt.started;
  for (uint32_t i = 0; i < job->spec.hosts(); ++i) {
    Host host;
    host.state = HostState::running;
    host.machine = "box-1";
    host.share = {4, int64_t{16} << 30, 0};
    attempt.hosts.push_back(host);
  }
  job->attempts = {attempt};
  return job;
}

// Job `secret` of another user holds half of the only machine; job `mine` waits for all of it.
struct World {
  Snapshot snapshot;
  World() {
    snapshot.machines = {{"box-1", 8, int64_t{64} << 30, 0}};
    snapshot.jobs = {run(made(1, "secret", 1, "bob")), made(2, "mine", 2)};
  }
  Explanation explained(const ExplainRights& rights, JobNumber job = 2) const {
    auto found = explain(snapshot, {}, {}, {}, kExplainNow, job, rights);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : Explanation();
  }
};

const ExplanationAnswer* find(const Explanation& explanation, schedule::ChangeKind kind) {
  const auto found = std::ranges::find_if(
      explanation.answers, [&](const auto& answer) { return answer.change.kind == kind; });
  return found == explanation.answers.end() ? nullptr : &*found;
}

TEST(Explain, ReportsTheReasonTheStartAndHelpfulChanges) {
  World world;
  world.snapshot.clock_offset = 1h;
  const Explanation found = world.explained(kAll);
  EXPECT_NE(found.reason.find("held by training-job/secret (4)"), std::string::npos)
      << found.reason;
  ASSERT_TRUE(found.starts);
  EXPECT_GT(*found.starts, kExplainNow + 1h + 3600s) << "wall time";
  const auto* smaller = find(found, schedule::ChangeKind::shrink_gang);
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->change.to, 1);
  EXPECT_TRUE(smaller->now);
  EXPECT_EQ(smaller->starts, kExplainNow + 1h);
  const auto* type = find(found, schedule::ChangeKind::change_type);
  ASSERT_TRUE(type);
  EXPECT_EQ(type->change.name, "ml.m5.large");
  const auto* end = find(found, schedule::ChangeKind::end_job);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->job.name, "secret");
  EXPECT_EQ(end->job_title, "training-job/secret");
  EXPECT_TRUE(find(found, schedule::ChangeKind::add_machines));
}

TEST(Explain, HidesJobsThatTheCallerMayNotSee) {
  World world;
  world.snapshot.jobs.insert(world.snapshot.jobs.begin() + 1, made(2, "hidden-too", 2));
  auto mine = made(3, "mine", 1);
  world.snapshot.jobs.back() = mine;
  const Explanation found = world.explained(kNone, 3);
  EXPECT_NE(found.reason.find("behind another job"), std::string::npos) << found.reason;
  EXPECT_NE(found.reason.find("held by another job (4)"), std::string::npos) << found.reason;
  EXPECT_FALSE(find(found, schedule::ChangeKind::end_job));
  EXPECT_FALSE(find(found, schedule::ChangeKind::cancel_job));
  std::string all = found.reason;
  for (const auto& answer : found.answers)
    all += answer.change.name + answer.job.name + answer.job_title;
  EXPECT_EQ(all.find("secret"), std::string::npos) << all;
  EXPECT_EQ(all.find("hidden"), std::string::npos) << all;
  EXPECT_EQ(all.find('\x01'), std::string::npos) << "every guard is removed";
}

// The quota of another user names that user; the caller may see its own quota.
TEST(Explain, ShowsOnlyTheCallersOwnLimits) {
  World world;
  world.snapshot.jobs = {run(made(1, "secret", 1, "bob")), made(2, "second-secret", 1, "bob"),
                         made(3, "mine", 2)};
  InstanceQuota quota;
  quota.instance_type = "ml.m5.xlarge";
  quota.count = 1;
  world.snapshot.quotas = {quota};
  const Explanation found = world.explained(kNone, 3);
  EXPECT_NE(found.reason.find("by ana"), std::string::npos) << found.reason;
  const auto* raise = find(found, schedule::ChangeKind::raise_limit);
  ASSERT_TRUE(raise);
  EXPECT_NE(raise->change.name.find("by ana"), std::string::npos) << raise->change.name;
  EXPECT_EQ(raise->change.to, 2);
  for (const auto& answer : found.answers)
    EXPECT_EQ(answer.change.name.find("bob"), std::string::npos) << answer.change.name;
}

TEST(Explain, ExplainsTheFirstWaitingChildOfAnArray) {
  World world;
  auto array = made(2, "array", 1);
  array->spec.array.size = 2;
  array->state = JobState::active;
  auto child = made(3, "array:1", 2);
  child->parent = 2;
  world.snapshot.jobs = {run(made(1, "secret")), array, child};
  EXPECT_EQ(world.explained(kAll).job.name, "array:1");
}

TEST(Explain, TellsWhyAJobCannotBePlannedYet) {
  World world;
  auto job = made(2, "mine");
  job->awaits = {1};
  world.snapshot.jobs.back() = job;
  const Explanation found = world.explained(kAll);
  EXPECT_EQ(found.reason, "waits for 1 job that it depends on");
  EXPECT_TRUE(found.answers.empty());
}

TEST(Explain, RejectsJobsThatDoNotWait) {
  const World world;
  const auto runs = explain(world.snapshot, {}, {}, {}, kExplainNow, 1, kAll);
  ASSERT_FALSE(runs);
  EXPECT_EQ(runs.error().kind, Kind::conflict);
  const auto unknown = explain(world.snapshot, {}, {}, {}, kExplainNow, 99, kAll);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, Kind::unavailable);
}

CreateJob new_job(const std::string& name, uint32_t hosts, const std::string& who = "ana") {
  CreateJob create;
  create.key = {"eu-west-1", name};
  create.spec = made(1, name, hosts, who)->spec;
  create.spec.max_runtime_seconds = 600;
  return create;
}

Explanation previewed(const World& world, uint32_t hosts, const ExplainRights& rights,
                      bool with_changes = false) {
  auto found = preview(world.snapshot, {}, {}, {}, kExplainNow, new_job("next", hosts), rights,
                       with_changes);
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : Explanation();
}

TEST(Preview, TellsThatAJobWouldStartNow) {
  World world;
  world.snapshot.jobs.pop_back();  // nothing waits: half of the machine is free
  world.snapshot.clock_offset = 1h;
  const size_t jobs = world.snapshot.jobs.size();
  const Explanation found = previewed(world, 1, kNone);
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.starts, kExplainNow + 1h) << "wall time";
  EXPECT_EQ(found.job.name, "next");
  EXPECT_EQ(world.snapshot.jobs.size(), jobs) << "the snapshot is unchanged";
}

TEST(Preview, EqualsTheDecisionOnceTheJobExists) {
  for (const uint32_t hosts : {1u, 2u})
    for (const bool others_wait : {false, true}) {
      World world;
      if (!others_wait) world.snapshot.jobs.pop_back();
      const Explanation found = previewed(world, hosts, kAll);
      Snapshot after = world.snapshot;
      auto job = made(9, "next", hosts);
      job->spec.max_runtime_seconds = 600;
      job->created = kExplainNow;
      after.jobs.push_back(job);
      const Decision decision = decide(after, {}, {}, {}, kExplainNow);
      const bool started = std::ranges::any_of(decision.commands, [](const Command& command) {
        const auto* start = std::get_if<StartAttempt>(&command);
        return start && start->job == 9;
      });
      EXPECT_EQ(found.reason.empty(), started) << hosts << others_wait << found.reason;
      for (const schedule::Wait& wait : decision.waits)
        if (wait.job == 9) {
          EXPECT_EQ(found.reason, reveal_to_all(wait.reason.str()));
        }
    }
}

TEST(Preview, TellsWhenAJobThatMustWaitWouldStart) {
  World world;
  world.snapshot.jobs.pop_back();
  const Explanation found = previewed(world, 2, kAll, true);
  EXPECT_NE(found.reason.find("held by training-job/secret (4)"), std::string::npos)
      << found.reason;
  ASSERT_TRUE(found.starts);
  EXPECT_GT(*found.starts, kExplainNow + 3600s - 1min);
  EXPECT_TRUE(find(found, schedule::ChangeKind::shrink_gang));
  EXPECT_TRUE(previewed(world, 2, kAll, false).answers.empty());
  EXPECT_EQ(previewed(world, 2, kAll, false).starts, found.starts);
}

TEST(Preview, HidesJobsThatTheCallerMayNotSee) {
  World world;
  const Explanation found = previewed(world, 2, kNone, true);
  std::string all = found.reason;
  for (const auto& answer : found.answers)
    all += answer.change.name + answer.job.name + answer.job_title;
  EXPECT_NE(all.find("held by another job (4)"), std::string::npos) << all;
  for (const char* name : {"secret", "mine", "bob", "\x01"})
    EXPECT_EQ(all.find(name), std::string::npos) << all;
}

// The numbers of children follow the number of their array, even before they are created.
TEST(Preview, ComesAfterTheChildrenOfArrays) {
  World world;
  auto array = made(2, "array", 1);
  array->spec.array.size = 100;
  array->state = JobState::active;
  array->children_made = 100;
  auto child = made(102, "array:99", 1);
  child->parent = 2;
  world.snapshot.jobs = {run(made(1, "secret", 2, "bob")), array, child};
  EXPECT_FALSE(previewed(world, 1, kAll).reason.empty());
}

TEST(Preview, ExplainsAJobThatFitsNowhere) {
  World world;
  const Explanation found = previewed(world, 3, kAll);
  EXPECT_FALSE(found.reason.empty());
  EXPECT_FALSE(found.starts);
}

}  // namespace
}  // namespace trainyard::reconcile
