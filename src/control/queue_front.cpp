#include "control/queue_front.hpp"

#include <algorithm>

namespace trainyard::control {
namespace {

using domain::Job;
using domain::JobKey;
using domain::JobNumber;

// Since when it has been so, when it was so before.
Instant since(const FrontJob* before, JobNumber job, Instant now) {
  return before && before->job == job ? before->since : now;
}

}  // namespace

Fronts next_fronts(const Fronts& before, const std::vector<std::shared_ptr<const Job>>& jobs,
                   const domain::BatchYard& yard, const std::vector<JobNumber>& order, Instant now) {
  std::map<JobKey, std::vector<const Job*>> by_queue;
  const size_t looked_at = std::min(order.size(), kFrontScanMax);
  for (size_t i = 0; i < looked_at; ++i) {
    const auto found =
        std::ranges::lower_bound(jobs, order[i], {}, [](const auto& each) { return each->number; });
    if (found == jobs.end() || (*found)->number != order[i]) continue;
    const Job& job = **found;
    if (!job.spec.batch || job.state != domain::JobState::waiting || !job.awaits.empty()) continue;
    by_queue[{job.key.region, job.spec.batch->queue}].push_back(&job);
  }
  Fronts fronts;
  fronts.seen = now;
  for (auto& [key, waiting] : by_queue) {
    const domain::JobQueue* queue = yard.queue(key);
    if (!queue || queue->policy.empty()) std::ranges::sort(waiting, {}, &Job::number);
    const auto last = before.queues.find(key);
    const QueueFront* was = last == before.queues.end() ? nullptr : &last->second;
    QueueFront& front = fronts.queues[key];
    for (size_t place = 0; place < waiting.size(); ++place) {
      const JobNumber number = waiting[place]->number;
      if (place < kFrontJobsMax)
        front.jobs.push_back(
            {number, since(was && place < was->jobs.size() ? &was->jobs[place] : nullptr, number, now)});
      const std::string& share = waiting[place]->spec.batch->quota_share;
      if (share.empty() || front.of_shares.contains(share)) continue;
      const FrontJob* first = nullptr;
      if (was)
        if (const auto found = was->of_shares.find(share); found != was->of_shares.end())
          first = &found->second;
      front.of_shares[share] = {number, since(first, number, now)};
    }
  }
  return fronts;
}

std::vector<Overdue> overdue_at_heads(const Fronts& fronts, const domain::BatchYard& yard, Instant now) {
  std::vector<Overdue> overdue;
  for (const auto& [key, front] : fronts.queues) {
    const domain::JobQueue* queue = yard.queue(key);
    if (!queue || queue->wait_limits.empty() || front.jobs.empty()) continue;
    const FrontJob& head = front.jobs.front();
    const auto& limit = *std::ranges::min_element(queue->wait_limits, {}, &domain::WaitLimit::seconds_max);
    if (now - head.since < std::chrono::seconds(limit.seconds_max)) continue;
    overdue.push_back({head.job,
                       limit.terminate ? domain::Withdrawn::terminated : domain::Withdrawn::cancelled,
                       limit.reason});
  }
  return overdue;
}

}  // namespace trainyard::control
