#include "reconcile/queue_head.hpp"

#include <algorithm>
#include <utility>

#include "batch/catalog.hpp"

namespace trainyard::reconcile {
namespace {

using domain::Job;
using domain::JobKey;
using domain::JobNumber;
using schedule::WaitCause;

constexpr std::pair<WaitCause, std::string_view> kCodes[] = {
    {WaitCause::capacity, "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"},
    {WaitCause::machine, "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"},
    {WaitCause::environment, "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"}};

struct Standing {
  const Job* job = nullptr;
  WaitCause cause = WaitCause::other;
};

// Returns the jobs that are ready to run, by queue, in the order of `waits`.
std::map<JobKey, std::vector<Standing>> by_queue(
    const std::vector<std::shared_ptr<const Job>>& jobs, const std::vector<schedule::Wait>& waits) {
  std::vector<JobNumber> numbers;
  std::vector<const Job*> ready;
  for (const auto& job : jobs)
    if (job->spec.queue && job->state == domain::JobState::waiting && job->awaits.empty() &&
        !job->is_array()) {
      numbers.push_back(job->number);
      ready.push_back(job.get());
    }
  std::map<JobKey, std::vector<Standing>> queues;
  const JobKey* key = nullptr;  // the last job's queue: the next job is likely to be in it, too
  std::vector<Standing>* queue = nullptr;
  size_t at = 0;
  for (const schedule::Wait& wait : waits) {
    // Most jobs also have adjacent numbers.
    if (at >= numbers.size() || numbers[at] != wait.job)
      at = size_t(std::ranges::lower_bound(numbers, wait.job) - numbers.begin());
    if (at >= numbers.size() || numbers[at] != wait.job) continue;
    const Job& job = *ready[at++];
    if (!queue || key->name != job.spec.queue->name || key->region != job.key.region) {
      const auto found = queues.try_emplace({job.key.region, job.spec.queue->name}).first;
      key = &found->first;
      queue = &found->second;
    }
    if (queue->size() < kHeadScanMax) queue->push_back({&job, wait.cause});
  }
  return queues;
}

// Carries the times of an unchanged entry over.
HeadJob head_job(const HeadJob* before, const Standing& standing, Instant now) {
  HeadJob queue_head{standing.job->number, now, standing.cause, now};
  if (!before || before->job != queue_head.job) return queue_head;
  queue_head.since = before->since;
  if (before->cause == queue_head.cause) queue_head.cause_since = before->cause_since;
  return queue_head;
}

}  // namespace

std::string_view wait_code(WaitCause cause) {
  const auto found =
      std::ranges::find(kCodes, cause, &std::pair<WaitCause, std::string_view>::first);
  return found == std::end(kCodes) ? "" : found->second;
}

QueueHeads next_queue_heads(const QueueHeads& before,
                            const std::vector<std::shared_ptr<const Job>>& jobs,
                            const batch::Catalog& catalog, const std::vector<schedule::Wait>& waits,
                            Instant now) {
  QueueHeads queue_heads;
  queue_heads.seen = now;
  for (auto& [key, waiting] : by_queue(jobs, waits)) {
    const batch::JobQueue* queue = catalog.queue(key);
    if (!queue || queue->policy.empty())
      std::ranges::sort(waiting, {}, [](const Standing& each) { return each.job->number; });
    const auto last = before.queues.find(key);
    const QueueHead* was = last == before.queues.end() ? nullptr : &last->second;
    QueueHead& queue_head = queue_heads.queues[key];
    for (size_t position = 0; position < waiting.size(); ++position) {
      if (position < kHeadJobsMax)
        queue_head.jobs.push_back(
            head_job(was && position < was->jobs.size() ? &was->jobs[position] : nullptr,
                     waiting[position], now));
      const std::string& share = waiting[position].job->spec.queue->quota_share;
      if (share.empty() || queue_head.of_shares.contains(share)) continue;
      const HeadJob* first = nullptr;
      if (was)
        if (const auto found = was->of_shares.find(share); found != was->of_shares.end())
          first = &found->second;
      queue_head.of_shares[share] = head_job(first, waiting[position], now);
    }
  }
  return queue_heads;
}

std::vector<Overdue> overdue_at_heads(const QueueHeads& queue_heads, const batch::Catalog& catalog,
                                      Instant now) {
  std::vector<Overdue> overdue;
  for (const auto& [key, queue_head] : queue_heads.queues) {
    const batch::JobQueue* queue = catalog.queue(key);
    if (!queue || queue->wait_limits.empty() || queue_head.jobs.empty()) continue;
    const HeadJob& head = queue_head.jobs.front();
    const batch::WaitLimit* over = nullptr;
    for (const batch::WaitLimit& limit : queue->wait_limits) {
      const bool coded =
          std::ranges::find(kCodes, limit.reason,
                            &std::pair<WaitCause, std::string_view>::second) != std::end(kCodes);
      if (coded && limit.reason != wait_code(head.cause)) continue;
      const Instant since = coded ? head.cause_since : head.since;
      if (now - since < std::chrono::seconds(limit.seconds_max)) continue;
      if (!over || limit.seconds_max < over->seconds_max) over = &limit;
    }
    if (over)
      overdue.push_back(
          {head.job,
           over->terminate ? domain::Cancellation::terminated : domain::Cancellation::cancelled,
           over->reason});
  }
  return overdue;
}

}  // namespace trainyard::reconcile
