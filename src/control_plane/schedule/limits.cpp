#include "schedule/limits.hpp"

#include <cmath>
#include <string_view>
#include <unordered_set>

#include "schedule/fair_share.hpp"

namespace trainyard::schedule {
namespace {

// Returns the amount of need i's limit, summed over all needs of the choice; nullopt if an earlier
// need has the same limit.
std::optional<double> all_of_limit(const Choice& choice, size_t i, double cpus) {
  double amount = 0;
  for (size_t j = 0; j < choice.needs.size(); ++j) {
    if (choice.needs[j].limit != choice.needs[i].limit) continue;
    if (j < i) return std::nullopt;
    amount += amount_of(choice.needs[j], cpus);
  }
  return amount;
}

bool for_good(const Choice& choice, size_t limit) {
  for (const Need& need : choice.needs)
    if (need.limit == limit && need.for_good) return true;
  return false;
}

}  // namespace

Limits::Limits(const Snapshot& snapshot, const Allocations& allocations)
    : snapshot_(snapshot), claims_(snapshot.limits.size()), kept_(snapshot.queues.size()) {
  for (const Limit& limit : snapshot.limits) free_.push_back(limit.total - limit.used_besides);
  for (const Allocation& allocation : allocations.all())
    if (allocation.needs)
      for (const Need& need : *allocation.needs)
        free_[need.limit] -= amount_of(need, allocation.cpus);

  for (size_t queue = 0; queue < snapshot.queues.size(); ++queue) {
    const auto& fair = snapshot.queues[queue].fair;
    if (!fair || fair->reservation <= 0 || fair->reserves.empty()) continue;
    const double part = kept_part(*fair, active_shares(snapshot, queue));
    for (const size_t limit : fair->reserves)
      kept_[queue].emplace_back(limit, part * snapshot.limits[limit].total);
  }
}

double Limits::kept(size_t queue, size_t limit) const {
  for (const auto& [its, amount] : kept_[queue])
    if (its == limit) return amount;
  return 0;
}

std::vector<Limits::Obstacle> Limits::obstacles(const Choice& choice, size_t queue, double cpus,
                                                std::optional<Instant> ends) const {
  std::vector<Obstacle> found;
  for (size_t i = 0; i < choice.needs.size(); ++i) {
    const auto amount = all_of_limit(choice, i, cpus);
    if (!amount || *amount <= 0) continue;
    const size_t limit = choice.needs[i].limit;
    const double kept = this->kept(queue, limit), needs = *amount - kRoundingAmount;
    if (needs > snapshot_.limits[limit].total - kept)
      found.push_back({Obstacle::What::too_small, limit, *amount, kept});
    else if (delays_reservation(choice, limit, needs, ends))
      found.push_back({Obstacle::What::reserved, limit, *amount, kept});
    else if (needs > free_[limit] - kept)
      found.push_back({Obstacle::What::full, limit, *amount, kept});
  }
  return found;
}

bool Limits::delays_reservation(const Choice& choice, size_t limit, double amount,
                                std::optional<Instant> ends) const {
  const auto& claim = claims_[limit];
  if (!claim || amount <= claim->spare) return false;
  return !claim->at || !ends || *ends > *claim->at || for_good(choice, limit);
}

void Limits::take(const Choice& choice, double cpus, std::optional<Instant> ends) {
  for (const Need& need : choice.needs) {
    const double amount = amount_of(need, cpus);
    free_[need.limit] -= amount;
    if (auto& claim = claims_[need.limit];
        claim && (need.for_good || !claim->at || !ends || *ends > *claim->at))
      claim->spare -= amount;
  }
}

bool Limits::reserve(const Choice& choice, size_t queue, double cpus, const std::string& to,
                     const std::string& reason, std::optional<Instant> at,
                     const std::vector<double>& free_then) {
  bool reserved = false;
  for (size_t i = 0; i < choice.needs.size(); ++i) {
    const auto amount = all_of_limit(choice, i, cpus);
    auto& claim = claims_[choice.needs[i].limit];
    if (!amount || *amount <= 0 || claim) continue;
    claim = Claim{&to, reason, at, free_then[i] - kept(queue, choice.needs[i].limit) - *amount};
    reserved = true;
  }
  return reserved;
}

std::optional<Instant> Limits::earliest(const Choice& choice, size_t queue, double cpus,
                                        Allocations& allocations,
                                        std::vector<double>& free_then) const {
  std::vector<double> needs(choice.needs.size());
  free_then.assign(choice.needs.size(), 0);
  for (size_t i = 0; i < needs.size(); ++i) {
    free_then[i] = free_[choice.needs[i].limit];
    needs[i] = all_of_limit(choice, i, cpus).value_or(0) + kept(queue, choice.needs[i].limit) -
               kRoundingAmount;
  }
  const std::vector<double> free_now = free_then;
  const auto fits = [&] {
    for (size_t i = 0; i < needs.size(); ++i)
      if (needs[i] > free_then[i]) return false;
    return true;
  };
  const auto& order = allocations.by_end();
  for (size_t next = 0; next < order.size();) {
    const Instant at = *allocations.all()[order[next]].ends;
    for (; next < order.size() && *allocations.all()[order[next]].ends == at; ++next) {
      const Allocation& allocation = allocations.all()[order[next]];
      if (!allocation.needs) continue;
      for (const Need& need : *allocation.needs)
        for (size_t i = 0; i < needs.size() && !need.for_good; ++i)
          if (choice.needs[i].limit == need.limit) free_then[i] += amount_of(need, allocation.cpus);
    }
    if (fits()) return at;
  }
  free_then = free_now;
  return std::nullopt;
}

bool Limits::fits_without(const Choice& choice, size_t queue, double cpus,
                          std::optional<Instant> ends, const Allocations& allocations,
                          const std::vector<uint32_t>& ended) const {
  for (size_t i = 0; i < choice.needs.size(); ++i) {
    const size_t limit = choice.needs[i].limit;
    double free = free_[limit] - kept(queue, limit);
    for (const uint32_t index : ended) {
      const Allocation& allocation = allocations.all()[index];
      if (!allocation.needs) continue;
      for (const Need& need : *allocation.needs)
        if (need.limit == limit && !need.for_good) free += amount_of(need, allocation.cpus);
    }
    const double needs = all_of_limit(choice, i, cpus).value_or(0) - kRoundingAmount;
    if (needs > free || delays_reservation(choice, limit, needs, ends)) return false;
  }
  return true;
}

}  // namespace trainyard::schedule
