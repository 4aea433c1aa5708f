#include "schedule/order.hpp"

#include <algorithm>

#include "schedule/fair_share.hpp"
#include "schedule/quota_order.hpp"

namespace trainyard::schedule {

JobOrder::JobOrder(const Snapshot& snapshot, const Quotas& quotas) : snapshot_(snapshot) {
  std::vector<std::vector<uint32_t>> jobs(snapshot.queues.size());
  for (uint32_t i = 0; i < snapshot.waiting.size(); ++i)
    jobs[snapshot.waiting[i].queue].push_back(i);
  for (size_t queue = 0; queue < jobs.size(); ++queue) {
    if (!snapshot.queues[queue].quota_shares.empty())
      orders_.push_back(
          std::make_unique<QuotaOrder>(snapshot, queue, std::move(jobs[queue]), quotas));
    else if (snapshot.queues[queue].fair)
      orders_.push_back(std::make_unique<FairOrder>(snapshot, queue, std::move(jobs[queue])));
    else
      orders_.push_back(std::make_unique<SubmissionOrder>(std::move(jobs[queue])));
    last_ = queue;
    put_back();
  }
}

void JobOrder::put_back() {
  if (!last_) return;
  if (const auto next = orders_[*last_]->next())
    candidates_.push({snapshot_.queues[*last_].priority, *next, *last_});
  last_.reset();
}

std::optional<uint32_t> JobOrder::next() {
  put_back();
  if (candidates_.empty()) return std::nullopt;
  const Candidate candidate = candidates_.top();
  candidates_.pop();
  last_ = candidate.queue;
  orders_[candidate.queue]->pop();
  return candidate.job;
}

void JobOrder::started(double cpus) { orders_[*last_]->started(cpus); }

void JobOrder::first_waits() {
  first_queue_ = last_;
  orders_[*last_]->first_waits();
}

bool JobOrder::ahead_of_first() const {
  return first_queue_ == last_ && orders_[*last_]->ahead_of_first();
}

void sort_by_urgency(std::vector<uint32_t>& jobs, const std::vector<WaitingJob>& waiting) {
  const auto more_urgent = [&](uint32_t a, uint32_t b) {
    return waiting[a].priority > waiting[b].priority;
  };
  if (!std::ranges::is_sorted(jobs, more_urgent)) std::ranges::stable_sort(jobs, more_urgent);
}

}  // namespace trainyard::schedule
