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
    queue.lent.resize(queue.units.size());
    for (const QuotaShare& share : snapshot.queues[l].quota_shares) {
      queue.by_name.emplace(share.name, queue.shares.size());
      Share& made = queue.shares.emplace_back();
      made.definition = &share;
      made.capacity.resize(queue.units.size());
      for (size_t unit = 0; unit < queue.units.size(); ++unit) {
        for (const QuotaShare::Quota& quota : share.quotas)
          if (quota.unit == queue.units[unit]) made.capacity[unit] = quota.capacity;
        if (share.lends) queue.lent[unit] += made.capacity[unit].value_or(0);
      }
    }
    queue.used.resize(queue.shares.size() * queue.units.size());
    queue.reserved = queue.used;
  }
  for (const Allocation& allocation : allocations.all()) {
    if (!allocation.queue || !allocation.demands || !has_quotas(*allocation.queue)) continue;
    Queue& queue = queues_[*allocation.queue];
    const auto share = queue.find(*allocation.share);
    if (!share) continue;
    const Amounts amounts = Quotas::amounts(queue, *allocation.demands);
    queue.add(queue.used, *share, amounts);
    if (!allocation.running || !allocation.running->leaving)
      queue.add(queue.reserved, *share, amounts);
  }
}

std::optional<size_t> Quotas::Queue::find(std::string_view name) const {
  const auto found = by_name.find(name);
  return found == by_name.end() ? std::nullopt : std::optional(found->second);
}

void Quotas::Queue::add(Held& held, size_t share, const Amounts& amounts, double sign) const {
  for (size_t unit = 0; unit < amounts.size(); ++unit)
    of(held, share, unit) += sign * amounts[unit];
}

Quotas::Amounts Quotas::amounts(const Queue& queue, const std::vector<Demand>& demands) {
  Amounts amounts(queue.units.size());
  for (const Demand& demand : demands)
    for (size_t unit = 0; unit < queue.units.size(); ++unit)
      if (queue.units[unit] == demand.unit) amounts[unit] += demand.amount;
  return amounts;
}

// Returns the most that the share may ever borrow.
double Quotas::borrowable(const Queue& queue, size_t share, size_t unit) {
  const Share& its = queue.shares[share];
  const QuotaShare& definition = *its.definition;
  if (!definition.borrows) return 0;
  double lent = queue.lent[unit];
  if (definition.lends) lent -= its.capacity[unit].value_or(0);
  if (definition.borrow_max) lent = std::min(lent, *definition.borrow_max * *its.capacity[unit]);
  return lent;
}

bool Quotas::would_borrow(const WaitingJob& job) const {
  const Queue& queue = queues_[job.queue];
  const auto share = queue.find(job.share);
  if (!share) return false;
  const Amounts amounts = Quotas::amounts(queue, job.demands);
  const Share& its = queue.shares[*share];
  bool beyond = false;
  for (size_t unit = 0; unit < amounts.size(); ++unit) {
    if (amounts[unit] <= 0 || !its.capacity[unit]) continue;
    const double own = *its.capacity[unit] + kRoundingAmount;
    if (amounts[unit] > own + borrowable(queue, *share, unit)) return false;
    beyond |= queue.of(queue.used, *share, unit) + amounts[unit] > own;
  }
  return beyond;
}

void Quotas::borrower_waits(const WaitingJob& job) {
  Queue& queue = queues_[job.queue];
  if (const auto share = queue.find(job.share)) queue.shares[*share].borrower_waits = true;
}

bool Quotas::behind_borrower(const WaitingJob& job) const {
  const Queue& queue = queues_[job.queue];
  const auto share = queue.find(job.share);
  return share && queue.shares[*share].borrower_waits;
}

std::optional<Quotas::Obstacle> Quotas::check(const Queue& queue, const Held& held, size_t share,
                                              const Amounts& amounts) {
  const Share& its = queue.shares[share];
  for (size_t unit = 0; unit < amounts.size(); ++unit) {
    if (amounts[unit] <= 0 || !its.capacity[unit]) continue;
    const double own = *its.capacity[unit], then = queue.of(held, share, unit) + amounts[unit];
    const double more = borrowable(queue, share, unit);
    const auto obstacle = [&](Obstacle::What what) {
      return Obstacle{
          what, queue.units[unit],           amounts[unit], queue.of(queue.used, share, unit), own,
          more, then > own + kRoundingAmount};
    };
    if (amounts[unit] > own + more + kRoundingAmount) return obstacle(Obstacle::What::too_small);
    if (then > own + more + kRoundingAmount) return obstacle(Obstacle::What::full);
    double beyond = 0, idle = 0;
    for (size_t other = 0; other < queue.shares.size(); ++other) {
      const auto& capacity = queue.shares[other].capacity[unit];
      if (!capacity) continue;
      const double over =
          queue.of(held, other, unit) + (other == share ? amounts[unit] : 0) - *capacity;
      // The reservations of a share may exceed what it could have at once with what it holds now.
      if (over > 0) beyond += std::min(over, borrowable(queue, other, unit));
      if (over < 0 && queue.shares[other].definition->lends) idle -= over;
    }
    if (beyond > idle + kRoundingAmount) return obstacle(Obstacle::What::full);
  }
  return std::nullopt;
}

std::optional<Quotas::Obstacle> Quotas::obstacle(const WaitingJob& job,
                                                 std::optional<Instant> ends) const {
  const Queue& queue = queues_[job.queue];
  if (queue.shares.empty()) return std::nullopt;
  const auto share = queue.find(job.share);
  if (!share) return Obstacle{Obstacle::What::no_share};
  const Amounts amounts = Quotas::amounts(queue, job.demands);
  if (auto now = check(queue, queue.used, *share, amounts)) return now;
  if (!queue.never && (!queue.reserved_at || (ends && *ends <= *queue.reserved_at)))
    return std::nullopt;
  auto then = check(queue, queue.reserved, *share, amounts);
  if (then) then->what = Obstacle::What::reserved;
  return then;
}

void Quotas::take(const WaitingJob& job) {
  Queue& queue = queues_[job.queue];
  if (queue.shares.empty()) return;
  const size_t share = queue.by_name.at(job.share);
  const Amounts amounts = Quotas::amounts(queue, job.demands);
  queue.add(queue.used, share, amounts);
  queue.add(queue.reserved, share, amounts);
}

void Quotas::reserve(const WaitingJob& job, std::optional<Instant> at) {
  Queue& queue = queues_[job.queue];
  const auto share = queue.find(job.share);
  if (!share || queue.shares[*share].first) return;
  queue.shares[*share].first = &job.name;
  queue.add(queue.reserved, *share, Quotas::amounts(queue, job.demands));
  queue.never |= !at;
  if (at) queue.reserved_at = std::min(*at, queue.reserved_at.value_or(*at));
}

const std::string* Quotas::first_of(const WaitingJob& job) const {
  const Queue& queue = queues_[job.queue];
  const auto share = queue.find(job.share);
  return share ? queue.shares[*share].first : nullptr;
}

std::optional<Instant> Quotas::earliest(const WaitingJob& job, Allocations& allocations) const {
  const Queue& queue = queues_[job.queue];
  const auto of_job = queue.find(job.share);
  if (!of_job) return std::nullopt;
  Held held = queue.used;
  const Amounts amounts = Quotas::amounts(queue, job.demands);
  const auto& order = allocations.by_end();
  for (size_t next = 0; next < order.size();) {
    const Instant at = *allocations.all()[order[next]].ends;
    bool changed = false;
    for (; next < order.size() && *allocations.all()[order[next]].ends == at; ++next) {
      const Allocation& allocation = allocations.all()[order[next]];
      if (allocation.queue != job.queue || !allocation.demands) continue;
      const auto share = queue.find(*allocation.share);
      if (!share) continue;
      queue.add(held, *share, Quotas::amounts(queue, *allocation.demands), -1);
      changed = true;
    }
    if (changed && !check(queue, held, *of_job, amounts)) return at;
  }
  return std::nullopt;
}

bool Quotas::may_be_preempted(const Allocation& allocation, const WaitingJob& to) const {
  if (!allocation.running || !allocation.running->gives_way || allocation.running->leaving ||
      allocation.queue != to.queue || allocation.running->job == 0)
    return false;
  const Queue& queue = queues_[to.queue];
  const auto share = queue.find(*allocation.share);
  if (!share) return false;
  if (*allocation.share == to.share)
    return queue.shares[*share].definition->preempts_within &&
           allocation.running->priority < to.priority;
  return holds_beyond(queue, queue.reserved, *share, amounts(queue, *allocation.demands));
}

bool Quotas::holds_beyond(const Queue& queue, const Held& held, size_t share,
                          const Amounts& amounts) {
  for (size_t unit = 0; unit < amounts.size(); ++unit)
    if (const auto& capacity = queue.shares[share].capacity[unit];
        amounts[unit] > 0 && capacity && queue.of(held, share, unit) > *capacity + kRoundingAmount)
      return true;
  return false;
}

bool Quotas::beyond_without(const Allocations& allocations, uint32_t index,
                            std::span<const uint32_t> ended, const WaitingJob& to) const {
  const Allocation& allocation = allocations.all()[index];
  const Queue& queue = queues_[*allocation.queue];
  const Held held = without(queue, allocations, ended);
  const size_t share = queue.by_name.at(*allocation.share);
  const Share& its = queue.shares[share];
  const Amounts back = amounts(queue, *allocation.demands);
  if (!holds_beyond(queue, held, share, back)) return false;
  if (!its.definition->preempts_within || allocation.running->priority < to.priority) return true;
  for (size_t unit = 0; unit < back.size(); ++unit)
    if (back[unit] > 0 && its.capacity[unit] &&
        queue.of(held, share, unit) - back[unit] < *its.capacity[unit] - kRoundingAmount)
      return false;
  return true;
}

Quotas::Held Quotas::without(const Queue& queue, const Allocations& allocations,
                             std::span<const uint32_t> ended) {
  Held held = queue.reserved;
  for (const uint32_t index : ended) {
    const Allocation& allocation = allocations.all()[index];
    if (const auto share = queue.find(*allocation.share))
      queue.add(held, *share, amounts(queue, *allocation.demands), -1);
  }
  return held;
}

bool Quotas::fits_without(const WaitingJob& job, const Allocations& allocations,
                          std::span<const uint32_t> ended) const {
  const Queue& queue = queues_[job.queue];
  return !check(queue, without(queue, allocations, ended), queue.by_name.at(job.share),
                amounts(queue, job.demands));
}

bool Quotas::own_without(const WaitingJob& job, const Allocations& allocations,
                         std::span<const uint32_t> ended) const {
  const Queue& queue = queues_[job.queue];
  const Held held = without(queue, allocations, ended);
  const size_t share = queue.by_name.at(job.share);
  const Amounts needs = amounts(queue, job.demands);
  if (check(queue, held, share, needs)) return false;
  for (size_t unit = 0; unit < needs.size(); ++unit)
    if (const auto& capacity = queue.shares[share].capacity[unit];
        needs[unit] > 0 && capacity &&
        queue.of(held, share, unit) + needs[unit] > *capacity + kRoundingAmount)
      return false;
  return true;
}

void Quotas::leave(const Allocations& allocations, std::span<const uint32_t> ended) {
  for (const uint32_t index : ended) {
    const Allocation& allocation = allocations.all()[index];
    Queue& queue = queues_[*allocation.queue];
    queue.add(queue.reserved, queue.by_name.at(*allocation.share),
              amounts(queue, *allocation.demands), -1);
  }
}

}  // namespace trainyard::schedule
