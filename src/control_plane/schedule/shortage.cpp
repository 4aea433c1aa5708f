#include "schedule/shortage.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "schedule/pending_reasons.hpp"

namespace trainyard::schedule {
namespace {

// Returns the groups by the size of their hosts, the largest first since they have the fewest
// alternatives.
std::vector<uint32_t> larger_first(const Gang& gang) {
  std::vector<uint32_t> order(gang.groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
    return size_of(gang.groups[a].share) > size_of(gang.groups[b].share);
  });
  return order;
}

// Returns by machine what the gang needs if each host is placed where the shortage is smallest, on
// machines that could hold it when empty. Returns nullopt if a host finds no machine in this order.
std::optional<std::map<uint32_t, Share>> least_shortfall(const Gang& gang,
                                                         const std::vector<Machine>& machines,
                                                         const FreeCapacity& now) {
  std::map<uint32_t, Share> needs;
  for (const uint32_t g : larger_first(gang))
    for (uint32_t host = 0; host < gang.groups[g].count; ++host) {
      std::optional<uint32_t> best;
      double least = 0;
      for (uint32_t m = 0; m < machines.size(); ++m) {
        const auto known = needs.find(m);
        const Share before = known == needs.end() ? Share{} : known->second;
        const Share after = plus(before, gang.groups[g].share);
        if (!within(after, machines[m].total)) continue;
        const double more = shortfall(after, now.free(m)) - shortfall(before, now.free(m));
        if (best && more >= least) continue;
        best = m;
        least = more;
      }
      if (!best) return std::nullopt;
      needs[*best] = plus(needs[*best], gang.groups[g].share);
    }
  return needs;
}

std::map<uint32_t, Share> by_machine(const Gang& gang, const Layout& layout) {
  std::map<uint32_t, Share> needs;
  for (uint32_t host = 0; host < layout.size(); ++host)
    needs[layout[host]] = plus(needs[layout[host]], gang.share_of(host));
  return needs;
}

}  // namespace

std::string why_no_capacity(const Gang& gang, const std::vector<Machine>& machines,
                            const FreeCapacity& now, FreeCapacity& empty,
                            const Allocations& allocations) {
  if (gang.hosts > 1 && gang.hosts * machines.size() > kPairsExaminedMax)
    return capacity_reason(gang, now.capacity(gang.groups.front().share));
  auto needs = least_shortfall(gang, machines, now);
  if (!needs)
    if (const auto layout = empty.place(gang)) needs = by_machine(gang, *layout);
  std::vector<Shortage> shortages;
  std::map<uint32_t, size_t> of_machine;
  if (needs)
    for (const auto& [m, share] : *needs)
      if (!within(share, now.free(m))) {
        of_machine.emplace(m, shortages.size());
        shortages.push_back({&machines[m], share, now.free(m)});
      }
  if (shortages.empty()) return capacity_reason(gang, gang.hosts);
  for (const Allocation& allocation : allocations.all())
    for (const HeldHost& host : allocations.hosts(allocation))
      if (const auto found = of_machine.find(host.machine); found != of_machine.end())
        shortages[found->second].held.emplace_back(*allocation.holder, host.share);
  return shortage_reason(shortages);
}

std::string why_never(const std::vector<HostRequest>& requests, const Gang& gang,
                      const std::vector<Machine>& machines, const FreeCapacity& empty) {
  FreeCapacity capacity = empty;
  size_t placed = 0;
  std::vector<uint32_t> unplaced(gang.groups.size());
  for (const uint32_t g : larger_first(gang)) {
    const Group& group = gang.groups[g];
    const Gang one{{{group.share, 1}}, 1, group.share.cpus, ""};
    for (uint32_t host = 0; host < group.count; ++host) {
      const auto layout = capacity.place(one);
      if (!layout) {
        unplaced[g] = group.count - host;
        break;
      }
      capacity.set(layout->front(), minus(capacity.free(layout->front()), group.share));
      ++placed;
    }
  }
  std::vector<HostRequest> missing;
  for (size_t g = 0; g < requests.size(); ++g)
    if (unplaced[g] > 0)
      missing.push_back({requests[g].instance_type, gang.groups[g].share, unplaced[g]});
  // The hosts fit one by one, in another order than that of the search for the gang.
  if (missing.empty()) return capacity_reason(gang, gang.hosts);
  return too_large_reason(placed, missing, machines);
}

}  // namespace trainyard::schedule
