#include "schedule/quota.hpp"

#include <algorithm>
#include <limits>

#include "schedule/limits.hpp"

namespace trainyard::schedule {

Quotas::Quotas(const Snapshot& snapshot, const Allocations& allocations)
    : queues_(snapshot.queues.size()) {
  for (size_t l = 0; l < queues_.size(); ++l) {
    Queue& queue = queues_[l];
    for (const QuotaShare& share : snapshot.queues[l].quota_shares)
      for (const QuotaShare::Quota& quota : share.quotas)
        if (std::ranges::find(queue.units, quota.unit) == queue.units.end())
          queue.units.push_back(quota.unit);
    for (const QuotaShare& share : snapshot.queues[l].quota_shares) {
      queue.by_name.emplace(share.name, queue.shares.size());
      Share& made = queue.shares.emplace_back();
      made.definition = &share;
      made.capacity.resize(queue.units.size());
      made.used.resize(queue.units.size());
      for (size_t unit = 0; unit < queue.units.size(); ++unit)
        for (const QuotaShare::Quota& quota : share.quotas)
          if (quota.unit == queue.units[unit]) made.capacity[unit] = quota.capacity;
      made.reserved = made.used;
    }
  }
  for (const Allocation& allocation : allocations.all()) {
    if (!allocation.queue || !allocation.demands || !has_quotas(*allocation.queue)) continue;
    Queue& queue = queues_[*allocation.queue];
    const auto share = queue.by_name.find(*allocation.share);
    if (share == queue.by_name.end()) continue;
    Share& its = queue.shares[share->second];
    const Amounts amounts = Quotas::amounts(queue, *allocation.demands);
    for (size_t unit = 0; unit < amounts.size(); ++unit) {
      its.used[unit] += amounts[unit];
      if (!allocation.running || !allocation.running->leaving) its.reserved[unit] += amounts[unit];
    }
  }
}

const Quotas::Share* Quotas::share_of(const Queue& queue, std::string_view name) const {
  const auto found = queue.by_name.find(name);
  return found == queue.by_name.end() ? nullptr : &queue.shares[found->second];
}

Quotas::Amounts Quotas::amounts(const Queue& queue, const std::vector<Demand>& demands) {
  Amounts amounts(queue.units.size());
  for (const Demand& demand : demands)
    for (size_t unit = 0; unit < queue.units.size(); ++unit)
      if (queue.units[unit] == demand.unit) amounts[unit] += demand.amount;
  return amounts;
}

// Returns the most that the share may ever borrow.
double Quotas::borrowable(const Queue& queue, const Share& its, size_t unit) {
  if (!its.definition->borrows) return 0;
  double lent = 0;
  for (const Share& other : queue.shares)
    if (&other != &its && other.definition->name != its.definition->name && other.definition->lends)
      lent += other.capacity[unit].value_or(0);
  if (its.definition->borrow_max)
    lent = std::min(lent, *its.definition->borrow_max * *its.capacity[unit]);
  return lent;
}

bool Quotas::would_borrow(const WaitingJob& job) const {
  const Queue& queue = queues_[job.queue];
  const Share* its = share_of(queue, job.share);
  if (!its) return false;
  const Amounts amounts = Quotas::amounts(queue, job.demands);
  bool beyond = false;
  for (size_t unit = 0; unit < amounts.size(); ++unit) {
    if (amounts[unit] <= 0 || !its->capacity[unit]) continue;
    const double own = *its->capacity[unit] + kRoundingAmount;
    if (amounts[unit] > own + borrowable(queue, *its, unit)) return false;
    beyond |= its->used[unit] + amounts[unit] > own;
  }
  return beyond;
}

void Quotas::borrower_waits(const WaitingJob& job) {
  Queue& queue = queues_[job.queue];
  if (const auto found = queue.by_name.find(job.share); found != queue.by_name.end())
    queue.shares[found->second].borrower_waits = true;
}

bool Quotas::behind_borrower(const WaitingJob& job) const {
  const Share* its = share_of(queues_[job.queue], job.share);
  return its && its->borrower_waits;
}

std::optional<Quotas::Obstacle> Quotas::check(const Queue& queue, const std::vector<Share>& shares,
                                              const Share& its, const Amounts& amounts,
                                              Book book) const {
  for (size_t unit = 0; unit < amounts.size(); ++unit) {
    if (amounts[unit] <= 0 || !its.capacity[unit]) continue;
    const double own = *its.capacity[unit], then = of(its, book)[unit] + amounts[unit];
    const double more = borrowable(queue, its, unit);
    const auto obstacle = [&](Obstacle::What what) {
      return Obstacle{what, queue.units[unit],           amounts[unit], its.used[unit], own,
                      more, then > own + kRoundingAmount};
    };
    if (amounts[unit] > own + more + kRoundingAmount) return obstacle(Obstacle::What::too_small);
    if (then > own + more + kRoundingAmount) return obstacle(Obstacle::What::full);
    double beyond = 0, idle = 0;
    for (const Share& other : shares) {
      if (!other.capacity[unit]) continue;
      const double held = of(other, book)[unit] + (&other == &its ? amounts[unit] : 0);
      const double over = held - *other.capacity[unit];
      // The reservations of a share may exceed what it could have at once with what it holds now.
      if (over > 0) beyond += std::min(over, borrowable(queue, other, unit));
      if (over < 0 && other.definition->lends) idle -= over;
    }
    if (beyond > idle + kRoundingAmount) return obstacle(Obstacle::What::full);
  }
  return std::nullopt;
}

std::optional<Quotas::Obstacle> Quotas::obstacle(const WaitingJob& job,
                                                 std::optional<Instant> ends) const {
  const Queue& queue = queues_[job.queue];
  if (queue.shares.empty()) return std::nullopt;
  const Share* its = share_of(queue, job.share);
  if (!its) return Obstacle{Obstacle::What::no_share};
  const Amounts amounts = Quotas::amounts(queue, job.demands);
  if (auto now = check(queue, queue.shares, *its, amounts, Book::used)) return now;
  if (!queue.never && (!queue.reserved_at || (ends && *ends <= *queue.reserved_at)))
    return std::nullopt;
  auto then = check(queue, queue.shares, *its, amounts, Book::reserved);
  if (then) then->what = Obstacle::What::reserved;
  return then;
}

void Quotas::take(const WaitingJob& job) {
  Queue& queue = queues_[job.queue];
  if (queue.shares.empty()) return;
  Share& its = queue.shares[queue.by_name.at(job.share)];
  const Amounts amounts = Quotas::amounts(queue, job.demands);
  for (size_t unit = 0; unit < amounts.size(); ++unit) {
    its.used[unit] += amounts[unit];
    its.reserved[unit] += amounts[unit];
  }
}

void Quotas::reserve(const WaitingJob& job, std::optional<Instant> at) {
  Queue& queue = queues_[job.queue];
  const auto found = queue.by_name.find(job.share);
  if (found == queue.by_name.end() || queue.shares[found->second].first) return;
  Share& its = queue.shares[found->second];
  its.first = &job.name;
  const Amounts amounts = Quotas::amounts(queue, job.demands);
  for (size_t unit = 0; unit < amounts.size(); ++unit) its.reserved[unit] += amounts[unit];
  queue.never |= !at;
  if (at) queue.reserved_at = std::min(*at, queue.reserved_at.value_or(*at));
}

const std::string* Quotas::first_of(const WaitingJob& job) const {
  const Share* its = share_of(queues_[job.queue], job.share);
  return its ? its->first : nullptr;
}

std::optional<Instant> Quotas::earliest(const WaitingJob& job, Allocations& allocations) const {
  const Queue& queue = queues_[job.queue];
  const auto found = queue.by_name.find(job.share);
  if (found == queue.by_name.end()) return std::nullopt;
  std::vector<Share> shares = queue.shares;
  const Amounts amounts = Quotas::amounts(queue, job.demands);
  const auto& order = allocations.by_end();
  for (size_t next = 0; next < order.size();) {
    const Instant at = *allocations.all()[order[next]].ends;
    bool changed = false;
    for (; next < order.size() && *allocations.all()[order[next]].ends == at; ++next) {
      const Allocation& allocation = allocations.all()[order[next]];
      if (allocation.queue != job.queue || !allocation.demands) continue;
      const auto share = queue.by_name.find(*allocation.share);
      if (share == queue.by_name.end()) continue;
      const Amounts back = Quotas::amounts(queue, *allocation.demands);
      for (size_t unit = 0; unit < back.size(); ++unit)
        shares[share->second].used[unit] -= back[unit];
      changed = true;
    }
    if (changed && !check(queue, shares, shares[found->second], amounts, Book::used)) return at;
  }
  return std::nullopt;
}

bool Quotas::may_be_preempted(const Allocation& allocation, const WaitingJob& to) const {
  if (!allocation.running || !allocation.running->gives_way || allocation.running->leaving ||
      allocation.queue != to.queue || allocation.running->job == 0)
    return false;
  const Queue& queue = queues_[to.queue];
  const Share* its = share_of(queue, *allocation.share);
  if (!its) return false;
  if (*allocation.share == to.share)
    return its->definition->preempts_within && allocation.running->priority < to.priority;
  return holds_beyond(*its, amounts(queue, *allocation.demands));
}

bool Quotas::holds_beyond(const Share& its, const Amounts& amounts) {
  for (size_t unit = 0; unit < amounts.size(); ++unit)
    if (amounts[unit] > 0 && its.capacity[unit] &&
        its.reserved[unit] > *its.capacity[unit] + kRoundingAmount)
      return true;
  return false;
}

bool Quotas::beyond_without(const Allocations& allocations, uint32_t index,
                            std::span<const uint32_t> ended, const WaitingJob& to) const {
  const Allocation& allocation = allocations.all()[index];
  const Queue& queue = queues_[*allocation.queue];
  const auto shares = without(queue, allocations, ended);
  const Share& its = shares[queue.by_name.at(*allocation.share)];
  const Amounts back = amounts(queue, *allocation.demands);
  if (!holds_beyond(its, back)) return false;
  if (!its.definition->preempts_within || allocation.running->priority < to.priority) return true;
  for (size_t unit = 0; unit < back.size(); ++unit)
    if (back[unit] > 0 && its.capacity[unit] &&
        its.reserved[unit] - back[unit] < *its.capacity[unit] - kRoundingAmount)
      return false;
  return true;
}

std::vector<Quotas::Share> Quotas::without(const Queue& queue, const Allocations& allocations,
                                           std::span<const uint32_t> ended) const {
  std::vector<Share> shares = queue.shares;
  for (const uint32_t index : ended) {
    const Allocation& allocation = allocations.all()[index];
    const auto share = queue.by_name.find(*allocation.share);
    if (share == queue.by_name.end()) continue;
    const Amounts back = amounts(queue, *allocation.demands);
    for (size_t unit = 0; unit < back.size(); ++unit)
      shares[share->second].reserved[unit] -= back[unit];
  }
  return shares;
}

bool Quotas::fits_without(const WaitingJob& job, const Allocations& allocations,
                          std::span<const uint32_t> ended) const {
  const Queue& queue = queues_[job.queue];
  const auto shares = without(queue, allocations, ended);
  return !check(queue, shares, shares[queue.by_name.at(job.share)], amounts(queue, job.demands),
                Book::reserved);
}

bool Quotas::own_without(const WaitingJob& job, const Allocations& allocations,
                         std::span<const uint32_t> ended) const {
  const Queue& queue = queues_[job.queue];
  const auto shares = without(queue, allocations, ended);
  const auto found = check(queue, shares, shares[queue.by_name.at(job.share)],
                           amounts(queue, job.demands), Book::reserved);
  if (found) return false;
  const Share& its = shares[queue.by_name.at(job.share)];
  const Amounts needs = amounts(queue, job.demands);
  for (size_t unit = 0; unit < needs.size(); ++unit)
    if (needs[unit] > 0 && its.capacity[unit] &&
        its.reserved[unit] + needs[unit] > *its.capacity[unit] + kRoundingAmount)
      return false;
  return true;
}

void Quotas::leave(const Allocations& allocations, std::span<const uint32_t> ended) {
  for (const uint32_t index : ended) {
    const Allocation& allocation = allocations.all()[index];
    Queue& queue = queues_[*allocation.queue];
    Share& its = queue.shares[queue.by_name.at(*allocation.share)];
    const Amounts back = amounts(queue, *allocation.demands);
    for (size_t unit = 0; unit < back.size(); ++unit) its.reserved[unit] -= back[unit];
  }
}

}  // namespace trainyard::schedule
