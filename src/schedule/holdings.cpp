#include "schedule/holdings.hpp"

#include <algorithm>

namespace trainyard::schedule {

Holdings::Holdings(const Snapshot& snapshot, Instant now) {
  machines_.reserve(snapshot.machines.size());
  for (uint32_t m = 0; m < snapshot.machines.size(); ++m) machines_.emplace(snapshot.machines[m].name, m);
  all_.reserve(snapshot.running.size() + snapshot.pools.size() + 512);
  hosts_.reserve(snapshot.running.size() + snapshot.pools.size() + 512);
  const auto not_before_now = [&](std::optional<Instant> ends) {
    return ends ? std::optional(std::max(*ends, now)) : ends;
  };
  for (const Running& running : snapshot.running) {
    Holding holding{&running.name, &running.needs, &running.demands, &running};
    if (running.line) holding.line = uint32_t(*running.line);
    holding.share = &running.share;
    holding.ends = not_before_now(running.ends_by);
    hold(holding, running.hosts);
  }
  first_pool_ = all_.size();
  for (const Pool& pool : snapshot.pools) {
    Holding holding{&pool.holder};
    holding.ends = not_before_now(pool.until);
    hold(holding, pool.hosts);
  }
}

// What is on machines that are gone is held by nobody.
void Holdings::hold(Holding& holding, const std::vector<Placement>& hosts) {
  holding.hosts_begin = uint32_t(hosts_.size());
  for (const Placement& host : hosts) {
    holding.cpus += host.share.cpus;
    if (const auto machine = machines_.find(host.machine); machine != machines_.end())
      hosts_.push_back({machine->second, host.share});
  }
  holding.hosts_end = uint32_t(hosts_.size());
  all_.push_back(holding);
}

const std::vector<uint32_t>& Holdings::by_end() {
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

void Holdings::start(const Waiting& waiting, const Choice* choice, const Gang& gang, const Layout& layout,
                     std::optional<Instant> ends) {
  Holding holding{&waiting.name, choice ? &choice->needs : nullptr, &waiting.demands};
  holding.line = uint32_t(waiting.line);
  holding.share = &waiting.share;
  holding.ends = ends;
  holding.cpus = gang.cpus;
  holding.hosts_begin = uint32_t(hosts_.size());
  uint32_t host = 0;
  for (const Group& group : gang.groups)
    for (uint32_t i = 0; i < group.count; ++i) hosts_.push_back({layout[host++], group.share});
  holding.hosts_end = uint32_t(hosts_.size());
  all_.push_back(holding);
}

void Holdings::take_over(size_t pool, const Waiting& waiting, const Choice* choice,
                         std::optional<Instant> ends) {
  Holding& holding = all_[first_pool_ + pool];
  holding.holder = &waiting.name;
  holding.needs = choice ? &choice->needs : nullptr;
  holding.demands = &waiting.demands;
  holding.line = uint32_t(waiting.line);
  holding.share = &waiting.share;
  holding.ends = ends;
  by_end_.clear();
  sorted_ = 0;
}

}  // namespace trainyard::schedule
