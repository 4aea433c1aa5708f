#include "schedule/free_capacity.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.hpp"
#include "schedule/layout_search.hpp"

namespace trainyard::schedule {

size_t FreeCapacity::HashOfShare::operator()(const Share& share) const {
  uint64_t hash = std::bit_cast<uint64_t>(share.cpus) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ uint64_t(share.memory_bytes) ^ (hash >> 29)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ uint64_t(share.gpus) ^ (hash >> 32)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

FreeCapacity::FreeCapacity(const Topology& topology, std::vector<Share> free)
    : topology_(topology), free_(std::move(free)), class_of_machine_(free_.size()) {
  for (uint32_t m = 0; m < free_.size(); ++m) {
    Class& its = class_of(free_[m]);
    class_of_machine_[m] = uint32_t(&its - classes_.data());
    its.machines.push_back(m);
  }
}

FreeCapacity::Class& FreeCapacity::class_of(const Share& free) {
  const auto [found, is_new] = known_.try_emplace(free, uint32_t(classes_.size()));
  if (is_new) classes_.push_back({free, {}});
  return classes_[found->second];
}

void FreeCapacity::set(uint32_t machine, const Share& free) {
  const Share before = free_[machine];
  if (same(before, free)) return;
  auto& old = classes_[class_of_machine_[machine]].machines;
  old.erase(std::ranges::lower_bound(old, machine));
  Class& its = class_of(free);
  its.machines.insert(std::ranges::lower_bound(its.machines, machine), machine);
  class_of_machine_[machine] = uint32_t(&its - classes_.data());
  free_[machine] = free;
  for (Capacity& capacity : capacities_) {
    const int64_t more = times_within(capacity.share, free) - times_within(capacity.share, before);
    if (more == 0) continue;
    for (uint32_t node = topology_.of(machine);; node = topology_.all()[node].parent) {
      capacity.by_node[node] += more;
      if (node == Topology::kRoot) break;
    }
  }
}

std::optional<Layout> FreeCapacity::place(const Gang& gang) {
  if (gang.hosts == 0) return Layout{};
  if (!gang.even()) return place_unlike(gang);
  const Share& share = gang.groups.front().share;
  if (const auto machine = best_for(share, gang.hosts)) return Layout(gang.hosts, *machine);
  return gang.hosts == 1 ? std::nullopt : place_even(share, gang.hosts);
}

int64_t FreeCapacity::capacity(const Share& share) const {
  int64_t times = 0;
  for (const Class& each : classes_)
    if (!each.machines.empty())
      times += times_within(share, each.free) * int64_t(each.machines.size());
  return times;
}

// Returns the machine with capacity for `times` shares that has the least capacity left afterwards.
std::optional<uint32_t> FreeCapacity::best_for(const Share& share, int64_t times) const {
  const Class* best = nullptr;
  double least = 0;
  for (const Class& each : classes_) {
    if (each.machines.empty() || !within(share, each.free)) continue;
    if (times > 1 && times_within(share, each.free) < times) continue;
    const double size = size_of(each.free);
    if (best && (size > least || (size == least && each.machines.front() > best->machines.front())))
      continue;
    best = &each;
    least = size;
  }
  if (!best) return std::nullopt;
  return best->machines.front();
}

const FreeCapacity::Capacity& FreeCapacity::capacities(const Share& share) {
  for (const Capacity& known : capacities_)
    if (same(known.share, share)) return known;
  if (capacities_.size() == kCapacitiesMax) capacities_.erase(capacities_.begin());
  Capacity& made =
      capacities_.emplace_back(Capacity{share, std::vector<int64_t>(topology_.all().size())});
  for (uint32_t m = 0; m < free_.size(); ++m)
    made.by_node[topology_.of(m)] += times_within(share, free_[m]);
  for (uint32_t node = uint32_t(topology_.all().size()) - 1; node > 0; --node)
    made.by_node[topology_.all()[node].parent] += made.by_node[node];
  return made;
}

// Domains that may hold the gang, the innermost first, of equals the fullest; never the root.
std::vector<uint32_t> FreeCapacity::nearest(const Gang& gang) {
  std::vector<uint32_t> found;
  if (topology_.flat()) return found;
  std::vector<std::pair<Share, int64_t>> requested;
  for (const Group& group : gang.groups) {
    const auto known =
        std::ranges::find_if(requested, [&](auto& each) { return same(each.first, group.share); });
    if (known == requested.end())
      requested.emplace_back(group.share, group.count);
    else
      known->second += group.count;
  }
  for (uint32_t node = 1; node < topology_.all().size(); ++node) found.push_back(node);
  for (const auto& [share, count] : requested) {
    const auto& by_node = capacities(share).by_node;
    std::erase_if(found, [&, least = count](uint32_t node) { return by_node[node] < least; });
  }
  if (found.empty()) return found;
  const auto& by_node = capacities(requested.front().first).by_node;
  std::ranges::sort(found, [&](uint32_t a, uint32_t b) {
    const auto& one = topology_.all()[a];
    const auto& other = topology_.all()[b];
    if (one.depth != other.depth) return one.depth > other.depth;
    if (by_node[a] != by_node[b]) return by_node[a] < by_node[b];
    return a < b;
  });
  return found;
}

// Fills the largest bins first, and puts the last hosts where the least is left. Requires: the bins
// hold all hosts.
Layout FreeCapacity::pack(std::vector<Bin> bins, uint32_t hosts) {
  std::ranges::sort(bins, [](const Bin& a, const Bin& b) {
    if (a.times != b.times) return a.times < b.times;
    if (a.size != b.size) return a.size < b.size;
    return *a.begin < *b.begin;
  });
  Layout layout;
  layout.reserve(hosts);
  while (layout.size() < hosts) {
    const auto rest = int64_t(hosts - layout.size());
    CHECK(!bins.empty(), "the bins hold all hosts");
    auto bin = std::ranges::lower_bound(bins, rest, {}, &Bin::times);
    if (bin == bins.end()) bin = std::ranges::lower_bound(bins, bins.back().times, {}, &Bin::times);
    layout.insert(layout.end(), size_t(std::min(rest, bin->times)), *bin->begin);
    if (++bin->begin == bin->end) bins.erase(bin);
  }
  return layout;
}

std::optional<Layout> FreeCapacity::place_even(const Share& share, uint32_t hosts) {
  std::vector<Bin> bins;
  const auto domains = nearest({{{share, hosts}}, hosts, 0, ""});
  if (!domains.empty()) {
    const auto machines = topology_.machines(domains.front());
    std::vector<uint32_t> with_capacity;
    for (const uint32_t m : machines)
      if (within(share, free_[m])) with_capacity.push_back(m);
    for (auto m = with_capacity.begin(); m != with_capacity.end(); ++m)
      bins.push_back({times_within(share, free_[*m]), size_of(free_[*m]), m, m + 1});
    return pack(std::move(bins), hosts);
  }
  int64_t capacity = 0;
  for (const Class& each : classes_) {
    const int64_t times = each.machines.empty() ? 0 : times_within(share, each.free);
    if (times == 0) continue;
    capacity += times * int64_t(each.machines.size());
    bins.push_back({times, size_of(each.free), each.machines.begin(), each.machines.end()});
  }
  if (capacity < hosts) return std::nullopt;
  return pack(std::move(bins), hosts);
}

// A gang needs no more machines of a class than it has hosts.
std::vector<uint32_t> FreeCapacity::first_of_each_class(uint32_t count) const {
  std::vector<uint32_t> machines;
  for (const Class& each : classes_)
    machines.insert(
        machines.end(), each.machines.begin(),
        each.machines.begin() + ptrdiff_t(std::min<size_t>(count, each.machines.size())));
  std::ranges::sort(machines);
  return machines;
}

std::optional<Layout> FreeCapacity::place_unlike(const Gang& gang) {
  for (const Group& group : gang.groups)
    if (capacity(group.share) < group.count) return std::nullopt;
  const auto domains = nearest(gang);
  for (size_t i = 0; i < std::min(domains.size(), kDomainsTriedMax); ++i) {
    const auto in_it = topology_.machines(domains[i]);
    std::vector<uint32_t> machines(in_it.begin(), in_it.end());
    std::ranges::sort(machines);
    if (auto layout = lay(gang, machines)) return layout;
  }
  const std::vector<uint32_t> machines = first_of_each_class(gang.hosts);
  if (auto layout = lay(gang, machines)) return layout;
  std::vector<Share> free;
  for (const uint32_t m : machines) free.push_back(free_[m]);
  auto layout = search_layout(gang, std::move(free));
  if (layout)
    for (uint32_t& host : *layout) host = machines[host];
  return layout;
}

// Places host by host, the largest first: on a machine that the gang uses already, the fullest of
// these; else on the machine that can hold most hosts of its kind.
std::optional<Layout> FreeCapacity::lay(const Gang& gang,
                                        const std::vector<uint32_t>& machines) const {
  std::vector<uint32_t> first(gang.groups.size());  // host of each group
  std::vector<uint32_t> order(gang.groups.size());
  for (uint32_t g = 1; g < gang.groups.size(); ++g)
    first[g] = first[g - 1] + gang.groups[g - 1].count;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
    return size_of(gang.groups[a].share) > size_of(gang.groups[b].share);
  });
  std::vector<Share> left;
  std::vector<bool> used(machines.size());
  for (const uint32_t m : machines) left.push_back(free_[m]);
  Layout layout(gang.hosts);
  for (const uint32_t g : order) {
    const Group& group = gang.groups[g];
    uint32_t placed = 0;
    while (placed < group.count) {
      std::optional<size_t> best;
      for (size_t i = 0; i < left.size(); ++i) {
        if (!within(group.share, left[i])) continue;
        if (best && used[*best] > used[i]) continue;
        const bool better =
            !best || used[i] > used[*best] ||
            (used[i] ? size_of(left[i]) < size_of(left[*best])
                     : times_within(group.share, left[i]) > times_within(group.share, left[*best]));
        if (better) best = i;
      }
      if (!best) return std::nullopt;
      used[*best] = true;
      const auto times =
          uint32_t(std::min<int64_t>(times_within(group.share, left[*best]), group.count - placed));
      for (uint32_t host = 0; host < times; ++host) {
        left[*best] = minus(left[*best], group.share);
        layout[first[g] + placed++] = machines[*best];
      }
    }
  }
  return layout;
}

}  // namespace trainyard::schedule
