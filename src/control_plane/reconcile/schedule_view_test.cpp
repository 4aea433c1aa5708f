#include "reconcile/schedule_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "batch/catalog.hpp"
#include "batch/limits.hpp"
#include "reconcile/guarded_text.hpp"

namespace trainyard::reconcile {
namespace {

using namespace batch;
using namespace domain;

const std::string kRegion = "eu-west-1";
const Instant kViewNow = from_milliseconds(1'763'631'900'000);
constexpr Surroundings kSurroundings{5min, 2min, 60min};

// A cluster with a queue of containers ("q", in the compute environment "box"), one of service jobs
// ("training", in the service environment "instances") and licences.
Catalog catalog_of(std::vector<CapacityLimit> limits = {}, int64_t licences = 2,
                   bool replenishable = true) {
  Catalog catalog;
  ComputeEnvironment box;
  box.key = {kRegion, "box"};
  box.cpus_max = 16;
  put(catalog, ResourceChange::create, box);
  ServiceEnvironment instances;
  instances.key = {kRegion, "instances"};
  instances.limits = std::move(limits);
  put(catalog, ResourceChange::create, instances);
  JobQueue queue;
  queue.key = {kRegion, "q"};
  queue.priority = 7;
  queue.environments = {"box"};
  put(catalog, ResourceChange::create, queue);
  queue.key.name = "training";
  queue.service = true;
  queue.environments = {"instances"};
  put(catalog, ResourceChange::create, queue);
  ConsumableResource resource;
  resource.key = {kRegion, "licences"};
  resource.total = licences;
  resource.replenishable = replenishable;
  put(catalog, ResourceChange::create, resource);
  return catalog;
}

std::shared_ptr<Job> training_job(JobNumber number, uint32_t hosts = 1,
                                  const std::string& who = "owner") {
  auto job = std::make_shared<Job>();
  job->number = number;
  job->key = {kRegion, "job" + std::to_string(number)};
  job->spec.groups = {{"homogeneousCluster", "ml.m5.large", hosts}};
  job->spec.principal = who;
  return job;
}

std::shared_ptr<Job> service_job(JobNumber number, uint32_t hosts) {
  auto job = training_job(number, hosts);
  job->spec.queue.emplace();
  job->spec.queue->name = "training";
  return job;
}

std::shared_ptr<Job> container(JobNumber number, double cpus, int64_t licences = 0) {
  auto job = training_job(number);
  job->spec.groups = {{"default", "vCPU", 1, Share{cpus, int64_t{1} << 30, 0}}};
  job->spec.max_runtime_seconds = kRuntimeSecondsMax;
  job->spec.queue.emplace();
  job->spec.contract = Contract::plain;
  job->spec.queue->name = "q";
  job->spec.display_name = "container";
  if (licences > 0) job->spec.queue->consumes = {{"licences", licences}};
  return job;
}

// Makes a job that was placed `ago` and has trained since.
void run(Job& job, Duration ago = 60s, double cpus = 2) {
  job.state = JobState::active;
  Attempt& attempt = job.attempts.emplace_back();
  attempt.started = kViewNow - ago;
  attempt.training_started = attempt.started;
  if (job.spec.queue)
    attempt.environment = job.spec.contract == Contract::training ? "instances" : "box";
  Host host;
  host.machine = "box-1";
  host.share = {cpus, int64_t{1} << 30, 0};
  attempt.hosts.assign(job.spec.hosts(), host);
}

struct View {
  Catalog catalog = catalog_of();
  std::vector<launch::Machine> machines{
      {"box-1", 64, int64_t{256} << 30, 0, {}, "", "room-1/rack-2"}};
  Usages usages;
  std::vector<InstanceQuota> quotas;

  schedule::Snapshot of(const std::vector<std::shared_ptr<Job>>& jobs) {
    ScheduleView view(machines, &catalog, usages, quotas, kSurroundings, kViewNow);
    for (const auto& job : jobs) {
      if (job->attempt()) view.hold(*job);
      if (job->state == JobState::waiting)
        if (const auto waits = view.wait(*job, {}); !waits) refused = waits.error().message;
    }
    return view.take();
  }
  // Returns the environment and machine of the last job, or its pending reason.
  std::string plan(const std::vector<std::shared_ptr<Job>>& jobs) {
    refused.clear();
    const schedule::Plan plan = schedule::plan(of(jobs), {}, kViewNow);
    for (const auto& start : plan.starts)
      if (start.job == jobs.back()->number) return "in " + start.environment;
    for (const auto& wait : plan.waits)
      if (wait.job == jobs.back()->number) return reveal_to_all(wait.reason.str());
    return refused;
  }
  std::string refused;
};

const schedule::Limit* limit_named(const schedule::Snapshot& snapshot, const std::string& part) {
  for (const schedule::Limit& limit : snapshot.limits)
    if (limit.name.find(part) != std::string::npos) return &limit;
  return nullptr;
}

TEST(ScheduleView, HasTheTopologyOfMachines) {
  const auto snapshot = View().of({});
  ASSERT_EQ(snapshot.machines.size(), 1u);
  EXPECT_EQ(snapshot.machines[0].topology, "room-1/rack-2");
  EXPECT_EQ(snapshot.machines[0].total.cpus, 64);
}

TEST(ScheduleView, HasOneQueuePerJobQueueAndOneForTrainingJobs) {
  const auto snapshot =
      View().of({training_job(1), container(2, 1), service_job(3, 1), container(4, 1)});
  ASSERT_EQ(snapshot.queues.size(), 3u);
  ASSERT_EQ(snapshot.waiting.size(), 4u);
  EXPECT_EQ(snapshot.waiting[0].queue, kQueueOfOthers);
  EXPECT_EQ(snapshot.queues[snapshot.waiting[1].queue].name, "job queue q");
  EXPECT_EQ(snapshot.queues[snapshot.waiting[1].queue].priority, 7);
  EXPECT_EQ(snapshot.waiting[1].queue, snapshot.waiting[3].queue);
  EXPECT_EQ(snapshot.waiting[1].choices.front().environment, "box");
}

TEST(ScheduleView, GivesUsersOfTrainingJobsEqualShares) {
  View view;
  view.usages[{{}, "bob"}] = {3600, kViewNow};
  view.usages[{{}, "nobody"}] = {0.0001, kViewNow};
  auto running = training_job(1, 1, "alice");
  run(*running, 60s, 2);
  const auto snapshot =
      view.of({running, training_job(2, 1, "alice"), training_job(3, 1, "carol")});
  ASSERT_TRUE(snapshot.queues[kQueueOfOthers].fair);
  const auto& shares = snapshot.queues[kQueueOfOthers].fair->shares;
  ASSERT_EQ(shares.size(), 3u) << "a share with hardly any usage is left out";
  EXPECT_EQ(shares[0].name, "alice");
  EXPECT_NEAR(shares[0].usage, 120, 0.1) << "running jobs count until now";
  EXPECT_EQ(shares[1].name, "bob");
  EXPECT_DOUBLE_EQ(shares[1].usage, 3600);
  EXPECT_EQ(shares[2].name, "carol");
  EXPECT_EQ(shares[2].usage, 0);
  for (const auto& share : shares) EXPECT_EQ(share.weight, 1);
  EXPECT_EQ(snapshot.waiting[1].share, "carol");
}

TEST(ScheduleView, HasTheQuotaOfEachPreference) {
  View view;
  view.quotas = {{"owner", kRegion, "ml.m5.large", 0}, {"owner", kRegion, "ml.m5.xlarge", 4}};
  auto job = training_job(1);
  job->spec.preferences = {{"homogeneousCluster", "ml.m5.large", 1},
                           {"homogeneousCluster", "ml.m5.xlarge", 3}};
  const auto snapshot = view.of({job});
  ASSERT_EQ(snapshot.waiting[0].alternatives.size(), 1u);
  const schedule::Alternative& second = snapshot.waiting[0].alternatives[0];
  EXPECT_EQ(second.requests[0].instance_type, "ml.m5.xlarge");
  EXPECT_EQ(second.requests[0].count, 3u);
  ASSERT_EQ(second.choices.front().needs.size(), 1u);
  EXPECT_EQ(snapshot.limits[second.choices.front().needs[0].limit].total, 4);
  EXPECT_EQ(second.choices.front().needs[0].amount, 3);
  const schedule::Plan plan = schedule::plan(snapshot, {}, kViewNow);
  ASSERT_EQ(plan.starts.size(), 1u);
  EXPECT_EQ(plan.starts[0].preference, 1u);
  job->selected = 1;
  job->use_selected();
  EXPECT_TRUE(view.of({job}).waiting[0].alternatives.empty())
      << "a later attempt keeps the selected type";
}

TEST(ScheduleView, HasTheWeightsAndTheReservationOfAFairSharePolicy) {
  View view;
  SchedulingPolicy policy;
  policy.key = {kRegion, "fair"};
  policy.decay_seconds = 100;
  policy.reservation_percent = 25;
  policy.weights = {{"red*", 0.25}};
  put(view.catalog, ResourceChange::create, policy);
  view.catalog.queues.at({kRegion, "q"}).policy = "fair";
  view.usages[{{kRegion, "q"}, "blue"}] = {1000, kViewNow - 100s};
  view.usages[{{kRegion, "other"}, "blue"}] = {5000, kViewNow};
  auto job = container(1, 1);
  job->spec.queue->share = "red7";
  job->spec.queue->priority = 5;
  const auto snapshot = view.of({job});
  const auto& scheduled = snapshot.queues[snapshot.waiting.at(0).queue];
  ASSERT_TRUE(scheduled.fair);
  EXPECT_EQ(scheduled.fair->decay, 100s);
  EXPECT_EQ(scheduled.fair->reservation, 0.25);
  ASSERT_EQ(scheduled.fair->reserves.size(), 1u);
  EXPECT_EQ(snapshot.limits[scheduled.fair->reserves[0]].name, "vCPU of compute environment box");
  ASSERT_EQ(scheduled.fair->shares.size(), 2u);
  EXPECT_NEAR(scheduled.fair->shares[0].usage, 1000 / std::exp(1), 1e-6) << "usage decays";
  EXPECT_EQ(scheduled.fair->shares[1].weight, 0.25);
  EXPECT_EQ(snapshot.waiting[0].share, "red7");
  EXPECT_EQ(snapshot.waiting[0].priority, 5);
}

TEST(ScheduleView, HasTheQuotaSharesOfAQueue) {
  View view;
  SchedulingPolicy policy;
  policy.key = {kRegion, "quotas"};
  policy.kind = SchedulingPolicy::Kind::quota_shares;
  put(view.catalog, ResourceChange::create, policy);
  view.catalog.queues.at({kRegion, "training"}).policy = "quotas";
  QuotaShare share;
  share.key = {kRegion, "training/red"};
  share.limits = {{"ml.m5.large", 3}};
  share.strategy = QuotaShare::Strategy::lend_and_borrow;
  share.borrow_percent = 50;
  put(view.catalog, ResourceChange::create, share);
  share.key.name = "training-two/blue";
  put(view.catalog, ResourceChange::create, share);
  auto running = service_job(1, 2), waits = service_job(2, 1);
  running->spec.queue->quota_share = waits->spec.queue->quota_share = "red";
  run(*running);
  const auto snapshot = view.of({running, waits});
  const auto& scheduled = snapshot.queues[snapshot.waiting.at(0).queue];
  ASSERT_EQ(scheduled.quota_shares.size(), 1u) << "quota shares of other queues are not in it";
  EXPECT_EQ(scheduled.quota_shares[0].name, "red");
  EXPECT_TRUE(scheduled.quota_shares[0].lends && scheduled.quota_shares[0].borrows);
  EXPECT_EQ(scheduled.quota_shares[0].borrow_max, 0.5);
  EXPECT_EQ(snapshot.running.at(0).share, "red");
  EXPECT_TRUE(snapshot.running[0].gives_way);
  EXPECT_EQ(snapshot.running[0].job, 1u);
  ASSERT_EQ(snapshot.running[0].demands.size(), 2u);
  EXPECT_EQ(snapshot.running[0].demands[0].unit, "ml.m5.large");
  EXPECT_EQ(snapshot.running[0].demands[0].amount, 2);
  running->attempts.back().interrupted = kViewNow;
  const auto leaving = view.of({running, waits});
  EXPECT_FALSE(leaving.running.at(0).gives_way) << "a job is not preempted twice";
  EXPECT_TRUE(leaving.running[0].leaving);
}

TEST(ScheduleView, LetsAnEndedAttemptHoldOnlyMachinesAndItsEnvironment) {
  auto job = container(1, 2, 1);
  run(*job);
  job->attempts.back().state = AttemptState::ended;
  job->state = JobState::completed;
  const auto snapshot = View().of({job});
  ASSERT_EQ(snapshot.running.size(), 1u);
  EXPECT_EQ(snapshot.running[0].job, 0u) << "it cannot be preempted";
  ASSERT_EQ(snapshot.running[0].needs.size(), 1u);
  EXPECT_EQ(snapshot.limits[snapshot.running[0].needs[0].limit].name,
            "vCPU of compute environment box");
  EXPECT_EQ(snapshot.running[0].needs[0].amount, 2);
  EXPECT_FALSE(snapshot.running[0].ends_by);
}

TEST(ScheduleView, HasTheLatestEndOfJobsWithALimitedRunTime) {
  auto trains = training_job(1), begins = training_job(2), endless = container(3, 1),
       stops = container(4, 1);
  for (const auto& job : {trains, begins, endless, stops}) run(*job, 60s);
  trains->spec.max_runtime_seconds = begins->spec.max_runtime_seconds = 600;
  begins->attempts.back().training_started.reset();
  stops->stop_requested = kViewNow - 10s;
  auto waits = training_job(5), child = container(6, 1);
  waits->spec.max_runtime_seconds = child->spec.max_runtime_seconds = 600;
  Attempt before;
  before.state = AttemptState::ended;
  before.started = kViewNow - 500s;
  before.training_started = before.started;
  before.ended = kViewNow - 400s;
  waits->attempts = child->attempts = {before};
  View world;
  const auto snapshot = world.of({trains, begins, endless, stops, waits, child});
  EXPECT_EQ(snapshot.running.at(0).ends_by, kViewNow + 540s + 2min + 60min);
  EXPECT_EQ(snapshot.running.at(1).ends_by, kViewNow + 4min + 600s + 2min + 60min)
      << "its time has not begun";
  EXPECT_FALSE(snapshot.running.at(2).ends_by);
  EXPECT_EQ(snapshot.running.at(3).ends_by, kViewNow - 10s + 2min) << "a container uploads nothing";
  EXPECT_EQ(snapshot.waiting.at(0).lasts_max, 5min + 500s + 2min + 60min)
      << "the limit applies to all attempts together";
  EXPECT_EQ(snapshot.waiting.at(1).lasts_max, 5min + 600s + 2min)
      << "the limit applies to each attempt";
  trains->attempts.back().training_started = kViewNow - 24h;
  EXPECT_EQ(world.of({trains}).running.at(0).ends_by, kViewNow + 2min + 60min)
      << "it is stopped at once";
}

TEST(ScheduleView, CountsInstancesOfAllJobsThatHoldThem) {
  View view;
  view.catalog = catalog_of({{std::string(kInstancesUnit), 4}});
  auto running = service_job(1, 3);
  run(*running);
  const std::string reason = view.plan({running, service_job(3, 2)});
  EXPECT_NE(reason.find(
                "waits for 1 more instances of service environment instances (needs 2, 3 of its 4"),
            std::string::npos)
      << reason;
  const std::string behind = view.plan({running, service_job(3, 4), service_job(4, 1)});
  EXPECT_NE(behind.find("behind training-job/job3"), std::string::npos)
      << "although capacity is free: " << behind;
  EXPECT_EQ(view.plan({running, service_job(4, 1)}), "in instances");
}

TEST(ScheduleView, NamesTheLimitToRaiseForJobsThatCanNeverStart) {
  View view;
  view.catalog = catalog_of({{"ml.m5.large", 2}});
  EXPECT_NE(view.plan({service_job(1, 3)}).find("raise its maxCapacity"), std::string::npos);
  EXPECT_EQ(view.plan({service_job(1, 3), service_job(2, 2)}), "in instances")
      << "it delays no other job";
  EXPECT_NE(view.plan({container(1, 17)}).find("raise its maxvCpus"), std::string::npos);
}

TEST(ScheduleView, QueuesNoJobWithoutAnEnabledEnvironment) {
  View view;
  view.catalog.service_environments.begin()->second.enabled = false;
  EXPECT_EQ(view.plan({service_job(1, 1)}),
            "waits for a service environment: none of job queue training exists and is enabled");
  view.catalog.environments.begin()->second.enabled = false;
  EXPECT_EQ(view.plan({container(1, 1)}),
            "waits for a compute environment: none of job queue q is enabled");
}

TEST(ScheduleView, ReturnsLicencesAndLetsOtherJobsStartBeforeJobsThatWaitForThem) {
  View view;
  auto running = container(1, 1, 1);
  run(*running);
  const std::string reason = view.plan({running, container(2, 1, 2)});
  EXPECT_NE(reason.find("waits for 1 more of consumable resource licences (needs 2, 1 of"),
            std::string::npos)
      << reason;
  EXPECT_NE(view.plan({running, container(2, 1, 2), container(3, 1, 1)})
                .find("behind job/container (job2)"),
            std::string::npos);
  EXPECT_EQ(view.plan({running, container(2, 1, 2), container(3, 1)}), "in box");
  EXPECT_NE(view.plan({container(5, 1, 3)}).find("raise its total quantity"), std::string::npos);
  EXPECT_EQ(view.plan({container(6, 1, 2)}), "in box");
  view.catalog.resources.clear();
  EXPECT_EQ(view.plan({container(6, 1, 2)}),
            "waits for the consumable resource licences, which no longer exists");
}

TEST(ScheduleView, TakesConsumedResourcesAtTheStart) {
  View view;
  view.catalog = catalog_of({}, 2, false);
  auto running = container(1, 1, 7);
  run(*running);
  const auto snapshot = view.of({running, container(2, 1, 2)});
  for (const auto& need : snapshot.running.at(0).needs) EXPECT_TRUE(need.cpus);
  EXPECT_TRUE(
      std::ranges::any_of(snapshot.waiting.at(0).choices.front().needs, &schedule::Need::for_good));
  EXPECT_EQ(view.plan({running, container(2, 1, 2)}), "in box");
  EXPECT_NE(
      view.plan({running, container(2, 1, 2), container(3, 1, 1)}).find("of consumable resource"),
      std::string::npos);
}

TEST(ScheduleView, LimitsEachUserInEachRegionByAQuota) {
  View view;
  view.quotas = {{"", "", "ml.m5.large", 2}, {"bob", "", "ml.m5.large", 3}};
  auto running = training_job(1, 2, "alice"), elsewhere = training_job(4, 2, "alice");
  run(*running);
  elsewhere->key.region = "us-east-1";
  const std::string reason = view.plan({running, training_job(2, 1, "alice")});
  EXPECT_NE(reason.find("ml.m5.large for training job usage by alice in eu-west-1"),
            std::string::npos)
      << reason;
  EXPECT_NE(reason.find("needs 1, 2 of its 2"), std::string::npos) << reason;
  EXPECT_EQ(view.plan({running, training_job(3, 3, "bob")}), "in ") << "each user has a quota";
  EXPECT_EQ(view.plan({running, elsewhere}), "in ");
  EXPECT_NE(view.plan({training_job(5, 4, "bob")}).find("raise its [[quota]]"), std::string::npos);
  auto other = training_job(6, 4, "alice");
  other->spec.groups[0].instance_type = "ml.m5.xlarge";
  EXPECT_EQ(view.plan({running, other}), "in ") << "this instance type has no quota";
  const auto snapshot =
      view.of({running, training_job(2, 1, "alice"), training_job(3, 1, "alice")});
  EXPECT_EQ(snapshot.limits.size(), 1u) << "all jobs share one limit";
  EXPECT_TRUE(limit_named(snapshot, "alice"));
}

TEST(ScheduleView, DoesNotCountContainersAsTrainingJobs) {
  View view;
  view.quotas = {{"", "", "vCPU", 0}};
  EXPECT_EQ(view.plan({container(1, 1)}), "in box");
}

}  // namespace
}  // namespace trainyard::reconcile
