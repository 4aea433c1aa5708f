#include "schedule/fair_share.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace trainyard::schedule {

size_t active_shares(const Snapshot& snapshot, size_t queue) {
  std::unordered_set<std::string_view> active;
  for (const Running& running : snapshot.running)
    if (running.queue == queue) active.insert(running.share);
  for (const WaitingJob& waiting : snapshot.waiting)
    if (waiting.queue == queue) active.insert(waiting.share);
  return active.size();
}

double kept_part(const FairShare& fair, size_t active) {
  return std::pow(fair.reservation, double(active));
}

namespace {

constexpr double kHoldSecondsMin = 0.1;  // the duration of one scheduling pass

double hold_seconds(const FairShare& fair) {
  using Seconds = std::chrono::duration<double>;
  const double window = Seconds(fair.decay).count();
  return fair.lasts <= Duration{}
             ? window
             : std::clamp(Seconds(fair.lasts).count(), kHoldSecondsMin, window);
}

}  // namespace

FairOrder::FairOrder(const Snapshot& snapshot, size_t queue, std::vector<uint32_t> jobs)
    : hold_seconds_(hold_seconds(*snapshot.queues[queue].fair)) {
  std::unordered_map<std::string_view, size_t> by_name;
  const auto share_of = [&](std::string_view name) -> Share& {
    const auto [found, is_new] = by_name.try_emplace(name, shares_.size());
    if (is_new) shares_.emplace_back();
    return shares_[found->second];
  };
  for (const FairShare::Share& share : snapshot.queues[queue].fair->shares) {
    Share& its = share_of(share.name);
    its.weight = share.weight;
    its.had = share.usage;
  }
  for (const Running& running : snapshot.running) {
    if (running.queue != queue) continue;
    Share& its = share_of(running.share);
    for (const Placement& host : running.hosts) its.had += host.share.cpus * hold_seconds_;
  }
  for (const uint32_t job : jobs) share_of(snapshot.waiting[job].share).jobs.push_back(job);
  for (size_t i = 0; i < shares_.size(); ++i) {
    sort_by_urgency(shares_[i].jobs, snapshot.waiting);
    last_ = i;
    next();
  }
}

std::optional<uint32_t> FairOrder::next() {
  if (last_) {
    const Share& share = shares_[*last_];
    if (share.at < share.jobs.size())
      candidates_.push({share.had * share.weight, share.jobs[share.at], *last_});
    last_.reset();
  }
  return candidates_.empty() ? std::nullopt : std::optional(candidates_.top().job);
}

void FairOrder::pop() {
  last_ = candidates_.top().share;
  candidates_.pop();
  ++shares_[*last_].at;
}

bool FairOrder::ahead_of_first() const {
  if (!first_ || first_ == last_) return false;
  const Share &first = shares_[*first_], &last = shares_[*last_];
  return last.had * last.weight > first.had * first.weight;
}

void FairOrder::started(double cpus) { shares_[*last_].had += cpus * hold_seconds_; }

}  // namespace trainyard::schedule
