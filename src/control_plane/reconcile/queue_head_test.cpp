#include "reconcile/queue_head.hpp"

#include <gtest/gtest.h>

#include "batch/catalog.hpp"

namespace trainyard::reconcile {
namespace {

using domain::Job;
using domain::JobNumber;
using namespace std::chrono_literals;

const Instant kStart = from_milliseconds(1'000'000);
const domain::JobKey kQueue{"eu-west-1", "q"};

// Has a queue with a policy, so that the scheduler's order counts.
const batch::Catalog kCatalog = [] {
  batch::Catalog catalog;
  batch::JobQueue queue;
  queue.key = kQueue;
  queue.policy = "fair";
  batch::put(catalog, batch::ResourceChange::create, queue);
  return catalog;
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

std::string text(const QueueHeads& queue_heads, Instant now) {
  std::string out;
  const auto found = queue_heads.queues.find(kQueue);
  if (found == queue_heads.queues.end()) return out;
  for (const HeadJob& each : found->second.jobs)
    out +=
        std::to_string(each.job) + "@" +
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now - each.since).count()) +
        " ";
  return out;
}

TEST(QueueHead, RecordsWhenEachJobReachedItsPosition) {
  std::vector<std::shared_ptr<const Job>> jobs{waiting(1), waiting(2), waiting(3)};
  QueueHeads queue_heads = next_queue_heads({}, jobs, kCatalog, in_order({1, 2, 3}), kStart);
  EXPECT_EQ(text(queue_heads, kStart), "1@0 2@0 3@0 ");
  queue_heads = next_queue_heads(queue_heads, jobs, kCatalog, in_order({1, 2, 3}), kStart + 10s);
  EXPECT_EQ(text(queue_heads, kStart + 10s), "1@10 2@10 3@10 ");
  queue_heads = next_queue_heads(queue_heads, jobs, kCatalog, in_order({2, 3}), kStart + 20s);
  EXPECT_EQ(text(queue_heads, kStart + 20s), "2@0 3@0 ") << "each moved up";
  queue_heads = next_queue_heads(queue_heads, jobs, kCatalog, in_order({2, 1, 3}), kStart + 25s);
  EXPECT_EQ(text(queue_heads, kStart + 25s), "2@5 1@0 3@0 ");
}

TEST(QueueHead, FollowsTheOrderOfSubmissionWithoutAPolicy) {
  const std::vector<std::shared_ptr<const Job>> jobs{waiting(1), waiting(2), waiting(3)};
  EXPECT_EQ(text(next_queue_heads({}, jobs, {}, in_order({3, 1, 2}), kStart), kStart),
            "1@0 2@0 3@0 ");
  EXPECT_EQ(text(next_queue_heads({}, jobs, kCatalog, in_order({3, 1, 2}), kStart), kStart),
            "3@0 1@0 2@0 ");
}

TEST(QueueHead, HasOnlyJobsThatAreReadyToRun) {
  auto pending = std::make_shared<Job>(*waiting(1));
  pending->awaits = {9};
  auto active = std::make_shared<Job>(*waiting(2));
  active->state = domain::JobState::active;
  auto training = std::make_shared<Job>(*waiting(3));
  training->spec.queue.reset();
  training->spec.contract = domain::Contract::training;
  const std::vector<std::shared_ptr<const Job>> jobs{pending, active, training, waiting(4),
                                                     waiting(5, "", "other")};
  const QueueHeads queue_heads =
      next_queue_heads({}, jobs, kCatalog, in_order({1, 2, 3, 4, 5, 77}), kStart);
  EXPECT_EQ(text(queue_heads, kStart), "4@0 ");
  EXPECT_EQ(queue_heads.queues.size(), 2u);
}

TEST(QueueHead, HasAtMostAHundredJobsAndTheFirstOfEachQuotaShare) {
  std::vector<std::shared_ptr<const Job>> jobs;
  std::vector<JobNumber> order;
  for (JobNumber number = 1; number <= 150; ++number) {
    jobs.push_back(waiting(number, number <= 120 ? "a" : "b"));
    order.push_back(number);
  }
  QueueHeads queue_heads = next_queue_heads({}, jobs, kCatalog, in_order(order), kStart);
  queue_heads = next_queue_heads(queue_heads, jobs, kCatalog, in_order(order), kStart + 5s);
  const QueueHead& queue_head = queue_heads.queues.at(kQueue);
  EXPECT_EQ(queue_head.jobs.size(), kHeadJobsMax);
  EXPECT_EQ(queue_head.of_shares.at("a").job, 1u);
  EXPECT_EQ(queue_head.of_shares.at("b").job, 121u);
  EXPECT_EQ(queue_head.of_shares.at("b").since, kStart);
}

TEST(QueueHead, FindsJobsThatExceedTheQueuesTimeLimit) {
  batch::Catalog catalog;
  batch::JobQueue queue;
  queue.key = kQueue;
  queue.wait_limits = {{900, false, "far too long"}, {600, true, "too long"}};
  batch::put(catalog, batch::ResourceChange::create, queue);
  const std::vector<std::shared_ptr<const Job>> jobs{waiting(1), waiting(2)};
  const QueueHeads queue_heads = next_queue_heads({}, jobs, kCatalog, in_order({1, 2}), kStart);
  EXPECT_TRUE(overdue_at_heads(queue_heads, catalog, kStart + 599s).empty());
  const auto overdue = overdue_at_heads(queue_heads, catalog, kStart + 600s);
  ASSERT_EQ(overdue.size(), 1u) << "the second job has not reached the head";
  EXPECT_EQ(overdue[0].job, 1u);
  EXPECT_EQ(overdue[0].how, domain::Cancellation::terminated);
  EXPECT_EQ(overdue[0].reason, "too long");
  EXPECT_TRUE(overdue_at_heads(queue_heads, {}, kStart + 600s).empty())
      << "the queue has no time limit";
}

TEST(QueueHead, ExistsForEachQueueEvenIfManyJobsWaitInOthers) {
  std::vector<std::shared_ptr<const Job>> jobs;
  std::vector<JobNumber> order;
  for (JobNumber number = 1; number <= kHeadScanMax + 5; ++number) {
    jobs.push_back(waiting(number, "", number <= kHeadScanMax + 2 ? "other" : "q"));
    order.push_back(number);
  }
  EXPECT_EQ(text(next_queue_heads({}, jobs, kCatalog, in_order(order), kStart), kStart),
            "20003@0 20004@0 20005@0 ");
}

TEST(QueueHead, AppliesLimitsWithAnAwsCodeToJobsWithThatCode) {
  using schedule::WaitCause;
  batch::Catalog catalog;
  batch::JobQueue queue;
  queue.key = kQueue;
  queue.wait_limits = {{600, false, "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"},
                       {900, false, "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"},
                       {700, false, "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"},
                       {5000, false, "too long"}};
  batch::put(catalog, batch::ResourceChange::create, queue);
  const std::vector<std::shared_ptr<const Job>> jobs{waiting(1)};
  const auto fired = [&](WaitCause cause, Duration after) {
    const QueueHeads queue_heads =
        next_queue_heads({}, jobs, catalog, {{1, "waits", {}, cause}}, kStart);
    const auto overdue = overdue_at_heads(queue_heads, catalog, kStart + after);
    return overdue.empty() ? "" : overdue.front().reason;
  };
  EXPECT_EQ(fired(WaitCause::capacity, 599s), "");
  EXPECT_EQ(fired(WaitCause::capacity, 600s), "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY");
  EXPECT_EQ(fired(WaitCause::machine, 899s), "");
  EXPECT_EQ(fired(WaitCause::machine, 900s), "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT");
  EXPECT_EQ(fired(WaitCause::environment, 699s), "");
  EXPECT_EQ(fired(WaitCause::environment, 700s),
            "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE");
  EXPECT_EQ(fired(WaitCause::other, 4999s), "")
      << "a job that waits for its position is not overdue";
  EXPECT_EQ(fired(WaitCause::other, 5000s), "too long");
  QueueHeads queue_heads =
      next_queue_heads({}, jobs, catalog, {{1, "waits", {}, WaitCause::other}}, kStart);
  queue_heads = next_queue_heads(queue_heads, jobs, catalog,
                                 {{1, "waits", {}, WaitCause::capacity}}, kStart + 500s);
  EXPECT_TRUE(overdue_at_heads(queue_heads, catalog, kStart + 1099s).empty())
      << "it has waited for capacity for 599 s";
  EXPECT_FALSE(overdue_at_heads(queue_heads, catalog, kStart + 1100s).empty());
}

}  // namespace
}  // namespace trainyard::reconcile
