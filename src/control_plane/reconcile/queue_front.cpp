#include "reconcile/queue_front.hpp"

#include <algorithm>
#include <utility>

#include "batch/catalog.hpp"

namespace trainyard::reconcile {
namespace {

using domain::Job;
using domain::JobKey;
using domain::JobNumber;
using schedule::Lack;

constexpr std::pair<Lack, std::string_view> kCodes[] = {
    {Lack::room, "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"},
    {Lack::machine, "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"},
    {Lack::environment, "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"}};

struct Standing {
  const Job* job = nullptr;
  Lack lack = Lack::other;
};

// The jobs that are ready to run, by queue, in the order of `waits`.
std::map<JobKey, std::vector<Standing>> by_queue(const std::vector<std::shared_ptr<const Job>>& jobs,
                                                 const std::vector<schedule::Wait>& waits) {
  std::vector<JobNumber> numbers;
  std::vector<const Job*> ready;
  for (const auto& job : jobs)
    if (job->spec.queue && job->state == domain::JobState::waiting && job->awaits.empty() &&
        !job->is_array()) {
      numbers.push_back(job->number);
      ready.push_back(job.get());
    }
  std::map<JobKey, std::vector<Standing>> queues;
  const JobKey* key = nullptr;  // of the last one: the next is likely to be in the same queue
  std::vector<Standing>* queue = nullptr;
  size_t at = 0;
  for (const schedule::Wait& wait : waits) {
    // Most are also adjacent by number.
    if (at >= numbers.size() || numbers[at] != wait.job)
      at = size_t(std::ranges::lower_bound(numbers, wait.job) - numbers.begin());
    if (at >= numbers.size() || numbers[at] != wait.job) continue;
    const Job& job = *ready[at++];
    if (!queue || key->name != job.spec.queue->name || key->region != job.key.region) {
      const auto found = queues.try_emplace({job.key.region, job.spec.queue->name}).first;
      key = &found->first;
      queue = &found->second;
    }
    if (queue->size() < kFrontScanMax) queue->push_back({&job, wait.lack});
  }
  return queues;
}

// Keeps the start time of an entry that has not changed.
FrontJob front_job(const FrontJob* before, const Standing& standing, Instant now) {
  FrontJob front{standing.job->number, now, standing.lack, now};
  if (!before || before->job != front.job) return front;
  front.since = before->since;
  if (before->lack == front.lack) front.lacks_since = before->lacks_since;
  return front;
}

}  // namespace

std::string_view wait_code(Lack lack) {
  const auto found = std::ranges::find(kCodes, lack, &std::pair<Lack, std::string_view>::first);
  return found == std::end(kCodes) ? "" : found->second;
}

Fronts next_fronts(const Fronts& before, const std::vector<std::shared_ptr<const Job>>& jobs,
                   const batch::Catalog& yard, const std::vector<schedule::Wait>& waits, Instant now) {
  Fronts fronts;
  fronts.seen = now;
  for (auto& [key, waiting] : by_queue(jobs, waits)) {
    const batch::JobQueue* queue = yard.queue(key);
    if (!queue || queue->policy.empty())
      std::ranges::sort(waiting, {}, [](const Standing& each) { return each.job->number; });
    const auto last = before.queues.find(key);
    const QueueFront* was = last == before.queues.end() ? nullptr : &last->second;
    QueueFront& front = fronts.queues[key];
    for (size_t place = 0; place < waiting.size(); ++place) {
      if (place < kFrontJobsMax)
        front.jobs.push_back(
            front_job(was && place < was->jobs.size() ? &was->jobs[place] : nullptr, waiting[place], now));
      const std::string& share = waiting[place].job->spec.queue->quota_share;
      if (share.empty() || front.of_shares.contains(share)) continue;
      const FrontJob* first = nullptr;
      if (was)
        if (const auto found = was->of_shares.find(share); found != was->of_shares.end())
          first = &found->second;
      front.of_shares[share] = front_job(first, waiting[place], now);
    }
  }
  return fronts;
}

std::vector<Overdue> overdue_at_heads(const Fronts& fronts, const batch::Catalog& yard, Instant now) {
  std::vector<Overdue> overdue;
  for (const auto& [key, front] : fronts.queues) {
    const batch::JobQueue* queue = yard.queue(key);
    if (!queue || queue->wait_limits.empty() || front.jobs.empty()) continue;
    const FrontJob& head = front.jobs.front();
    const batch::WaitLimit* over = nullptr;
    for (const batch::WaitLimit& limit : queue->wait_limits) {
      const bool coded = std::ranges::find(kCodes, limit.reason,
                                           &std::pair<Lack, std::string_view>::second) != std::end(kCodes);
      if (coded && limit.reason != wait_code(head.lack)) continue;
      const Instant since = coded ? head.lacks_since : head.since;
      if (now - since < std::chrono::seconds(limit.seconds_max)) continue;
      if (!over || limit.seconds_max < over->seconds_max) over = &limit;
    }
    if (over)
      overdue.push_back({head.job,
                         over->terminate ? domain::Withdrawn::terminated : domain::Withdrawn::cancelled,
                         over->reason});
  }
  return overdue;
}

}  // namespace trainyard::reconcile
