#include "schedule/allocations.hpp"

#include <algorithm>

namespace trainyard::schedule {

Allocations::Allocations(const Snapshot& snapshot, Instant now) {
  machines_.reserve(snapshot.machines.size());
  for (uint32_t m = 0; m < snapshot.machines.size(); ++m)
    machines_.emplace(snapshot.machines[m].name, m);
  all_.reserve(snapshot.running.size() + snapshot.pools.size() + 512);
  hosts_.reserve(snapshot.running.size() + snapshot.pools.size() + 512);
  const auto not_before_now = [&](std::optional<Instant> ends) {
    return ends ? std::optional(std::max(*ends, now)) : ends;
  };
  for (const Running& running : snapshot.running) {
    Allocation allocation{&running.name, &running.needs, &running.demands, &running};
    if (running.queue) allocation.queue = uint32_t(*running.queue);
    allocation.share = &running.share;
    allocation.ends = not_before_now(running.ends_by);
    hold(allocation, running.hosts);
  }
  first_pool_ = all_.size();
  for (const Pool& pool : snapshot.pools) {
    Allocation allocation{&pool.holder};
    allocation.ends = not_before_now(pool.until);
    hold(allocation, pool.hosts);
  }
}

// Ignores hosts on machines that no longer exist.
void Allocations::hold(Allocation& allocation, const std::vector<Placement>& hosts) {
  allocation.hosts_begin = uint32_t(hosts_.size());
  for (const Placement& host : hosts) {
    allocation.cpus += host.share.cpus;
    if (const auto machine = machines_.find(host.machine); machine != machines_.end())
      hosts_.push_back({machine->second, host.share});
  }
  allocation.hosts_end = uint32_t(hosts_.size());
  all_.push_back(allocation);
}

const std::vector<uint32_t>& Allocations::by_end() {
  const auto sooner = [this](uint32_t a, uint32_t b) {
    return all_[a].ends != all_[b].ends ? *all_[a].ends < *all_[b].ends : a < b;
  };
  const auto middle = ptrdiff_t(by_end_.size());
  for (; sorted_ < all_.size(); ++sorted_)
    if (all_[sorted_].ends) by_end_.push_back(uint32_t(sorted_));
  std::sort(by_end_.begin() + middle, by_end_.end(), sooner);
  std::inplace_merge(by_end_.begin(), by_end_.begin() + middle, by_end_.end(), sooner);
  return by_end_;
}

void Allocations::start(const WaitingJob& waiting, const Choice* choice, const Gang& gang,
                        const Layout& layout, std::optional<Instant> ends) {
  Allocation allocation{&waiting.name, choice ? &choice->needs : nullptr, &waiting.demands};
  allocation.queue = uint32_t(waiting.queue);
  allocation.share = &waiting.share;
  allocation.ends = ends;
  allocation.cpus = gang.cpus;
  allocation.hosts_begin = uint32_t(hosts_.size());
  uint32_t host = 0;
  for (const Group& group : gang.groups)
    for (uint32_t i = 0; i < group.count; ++i) hosts_.push_back({layout[host++], group.share});
  allocation.hosts_end = uint32_t(hosts_.size());
  all_.push_back(allocation);
}

void Allocations::take_over(size_t pool, const WaitingJob& waiting, const Choice* choice,
                            std::optional<Instant> ends) {
  Allocation& allocation = all_[first_pool_ + pool];
  allocation.holder = &waiting.name;
  allocation.needs = choice ? &choice->needs : nullptr;
  allocation.demands = &waiting.demands;
  allocation.queue = uint32_t(waiting.queue);
  allocation.share = &waiting.share;
  allocation.ends = ends;
  by_end_.clear();
  sorted_ = 0;
}

}  // namespace trainyard::schedule
