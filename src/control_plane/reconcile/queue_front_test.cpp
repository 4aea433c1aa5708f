#include "reconcile/queue_front.hpp"

#include <gtest/gtest.h>

#include "batch/catalog.hpp"

namespace trainyard::reconcile {
namespace {

using domain::Job;
using domain::JobNumber;
using namespace std::chrono_literals;

const Instant kStart = from_milliseconds(1'000'000);
const domain::JobKey kQueue{"eu-west-1", "q"};

// Queues with a policy: the scheduler's order counts.
const batch::Catalog kYard = [] {
  batch::Catalog yard;
  batch::JobQueue queue;
  queue.key = kQueue;
  queue.policy = "fair";
  batch::put(yard, batch::ResourceChange::create, queue);
  return yard;
}();

std::shared_ptr<const Job> waiting(JobNumber number, const std::string& share = "",
                                   const std::string& queue = "q") {
  auto job = std::make_shared<Job>();
  job->number = number;
  job->key = {"eu-west-1", "job" + std::to_string(number)};
  job->spec.queue.emplace();
  job->spec.contract = domain::Contract::plain;
  job->spec.queue->name = queue;
  job->spec.queue->quota_share = share;
  return job;
}

std::vector<schedule::Wait> in_order(const std::vector<JobNumber>& order) {
  std::vector<schedule::Wait> waits;
  for (const JobNumber number : order) waits.push_back({number, "waits"});
  return waits;
}

std::string text(const Fronts& fronts, Instant now) {
  std::string out;
  const auto found = fronts.queues.find(kQueue);
  if (found == fronts.queues.end()) return out;
  for (const FrontJob& each : found->second.jobs)
    out += std::to_string(each.job) + "@" +
           std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now - each.since).count()) + " ";
  return out;
}

TEST(QueueFront, KnowsSinceWhenEachHasStoodWhereItStands) {
  std::vector<std::shared_ptr<const Job>> jobs{waiting(1), waiting(2), waiting(3)};
  Fronts fronts = next_fronts({}, jobs, kYard, in_order({1, 2, 3}), kStart);
  EXPECT_EQ(text(fronts, kStart), "1@0 2@0 3@0 ");
  fronts = next_fronts(fronts, jobs, kYard, in_order({1, 2, 3}), kStart + 10s);
  EXPECT_EQ(text(fronts, kStart + 10s), "1@10 2@10 3@10 ");
  fronts = next_fronts(fronts, jobs, kYard, in_order({2, 3}), kStart + 20s);
  EXPECT_EQ(text(fronts, kStart + 20s), "2@0 3@0 ") << "each moved up";
  fronts = next_fronts(fronts, jobs, kYard, in_order({2, 1, 3}), kStart + 25s);
  EXPECT_EQ(text(fronts, kStart + 25s), "2@5 1@0 3@0 ");
}

TEST(QueueFront, WithoutAPolicyTheOrderIsThatOfSubmission) {
  const std::vector<std::shared_ptr<const Job>> jobs{waiting(1), waiting(2), waiting(3)};
  EXPECT_EQ(text(next_fronts({}, jobs, {}, in_order({3, 1, 2}), kStart), kStart), "1@0 2@0 3@0 ");
  EXPECT_EQ(text(next_fronts({}, jobs, kYard, in_order({3, 1, 2}), kStart), kStart), "3@0 1@0 2@0 ");
}

TEST(QueueFront, OnlyWhoIsReadyToRunStandsThere) {
  auto pending = std::make_shared<Job>(*waiting(1));
  pending->awaits = {9};
  auto active = std::make_shared<Job>(*waiting(2));
  active->state = domain::JobState::active;
  auto training = std::make_shared<Job>(*waiting(3));
  training->spec.queue.reset();
  training->spec.contract = domain::Contract::training;
  const std::vector<std::shared_ptr<const Job>> jobs{pending, active, training, waiting(4),
                                                     waiting(5, "", "other")};
  const Fronts fronts = next_fronts({}, jobs, kYard, in_order({1, 2, 3, 4, 5, 77}), kStart);
  EXPECT_EQ(text(fronts, kStart), "4@0 ");
  EXPECT_EQ(fronts.queues.size(), 2u);
}

TEST(QueueFront, HasAHundredAtMostAndTheFirstOfEachQuotaShare) {
  std::vector<std::shared_ptr<const Job>> jobs;
  std::vector<JobNumber> order;
  for (JobNumber number = 1; number <= 150; ++number) {
    jobs.push_back(waiting(number, number <= 120 ? "a" : "b"));
    order.push_back(number);
  }
  Fronts fronts = next_fronts({}, jobs, kYard, in_order(order), kStart);
  fronts = next_fronts(fronts, jobs, kYard, in_order(order), kStart + 5s);
  const QueueFront& front = fronts.queues.at(kQueue);
  EXPECT_EQ(front.jobs.size(), kFrontJobsMax);
  EXPECT_EQ(front.of_shares.at("a").job, 1u);
  EXPECT_EQ(front.of_shares.at("b").job, 121u);
  EXPECT_EQ(front.of_shares.at("b").since, kStart);
}

TEST(QueueFront, WhoStandsAtTheHeadForTooLongGoes) {
  batch::Catalog yard;
  batch::JobQueue queue;
  queue.key = kQueue;
  queue.wait_limits = {{900, false, "far too long"}, {600, true, "too long"}};
  batch::put(yard, batch::ResourceChange::create, queue);
  const std::vector<std::shared_ptr<const Job>> jobs{waiting(1), waiting(2)};
  const Fronts fronts = next_fronts({}, jobs, kYard, in_order({1, 2}), kStart);
  EXPECT_TRUE(overdue_at_heads(fronts, yard, kStart + 599s).empty());
  const auto overdue = overdue_at_heads(fronts, yard, kStart + 600s);
  ASSERT_EQ(overdue.size(), 1u) << "the second one's time has not begun";
  EXPECT_EQ(overdue[0].job, 1u);
  EXPECT_EQ(overdue[0].how, domain::Withdrawn::terminated);
  EXPECT_EQ(overdue[0].reason, "too long");
  EXPECT_TRUE(overdue_at_heads(fronts, {}, kStart + 600s).empty()) << "no limit is no limit";
}

TEST(QueueFront, AQueueIsSeenHoweverManyWaitInOthers) {
  std::vector<std::shared_ptr<const Job>> jobs;
  std::vector<JobNumber> order;
  for (JobNumber number = 1; number <= kFrontScanMax + 5; ++number) {
    jobs.push_back(waiting(number, "", number <= kFrontScanMax + 2 ? "other" : "q"));
    order.push_back(number);
  }
  EXPECT_EQ(text(next_fronts({}, jobs, kYard, in_order(order), kStart), kStart), "20003@0 20004@0 20005@0 ");
}

TEST(QueueFront, ALimitThatNamesOneOfAwsCodesIsForThoseWhoLackJustThat) {
  using schedule::Lack;
  batch::Catalog yard;
  batch::JobQueue queue;
  queue.key = kQueue;
  queue.wait_limits = {{600, false, "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"},
                       {900, false, "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"},
                       {700, false, "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"},
                       {5000, false, "too long"}};
  batch::put(yard, batch::ResourceChange::create, queue);
  const std::vector<std::shared_ptr<const Job>> jobs{waiting(1)};
  const auto fired = [&](Lack lack, Duration after) {
    const Fronts fronts = next_fronts({}, jobs, yard, {{1, "waits", {}, lack}}, kStart);
    const auto overdue = overdue_at_heads(fronts, yard, kStart + after);
    return overdue.empty() ? "" : overdue.front().reason;
  };
  EXPECT_EQ(fired(Lack::room, 599s), "");
  EXPECT_EQ(fired(Lack::room, 600s), "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY");
  EXPECT_EQ(fired(Lack::machine, 899s), "");
  EXPECT_EQ(fired(Lack::machine, 900s), "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT");
  EXPECT_EQ(fired(Lack::environment, 699s), "");
  EXPECT_EQ(fired(Lack::environment, 700s), "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE");
  EXPECT_EQ(fired(Lack::other, 4999s), "") << "a job that waits for its turn is well";
  EXPECT_EQ(fired(Lack::other, 5000s), "too long");
  Fronts fronts = next_fronts({}, jobs, yard, {{1, "waits", {}, Lack::other}}, kStart);
  fronts = next_fronts(fronts, jobs, yard, {{1, "waits", {}, Lack::room}}, kStart + 500s);
  EXPECT_TRUE(overdue_at_heads(fronts, yard, kStart + 1099s).empty()) << "it has lacked room for 599 s";
  EXPECT_FALSE(overdue_at_heads(fronts, yard, kStart + 1100s).empty());
}

}  // namespace
}  // namespace trainyard::reconcile
