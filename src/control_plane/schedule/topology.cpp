#include "schedule/topology.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"

namespace trainyard::schedule {
namespace {

// Orders a domain right before the domains in it: '/' sorts before all other characters.
bool before(std::string_view a, std::string_view b) {
  return std::ranges::lexicographical_compare(a, b, [](char x, char y) {
    const auto rank = [](char c) { return c == '/' ? -1 : int(uint8_t(c)); };
    return rank(x) < rank(y);
  });
}

}  // namespace

Topology::Topology(const std::vector<Machine>& machines) : domain_of_machine_(machines.size()) {
  std::unordered_map<std::string_view, std::vector<uint32_t>> by_name;
  for (uint32_t m = 0; m < machines.size(); ++m) by_name[machines[m].topology].push_back(m);
  std::vector<std::string_view> names;
  for (const auto& [name, members] : by_name) names.push_back(name);
  std::ranges::sort(names, before);

  topology_.push_back({});
  // to the current domain, the root's child first
  std::vector<std::pair<std::string_view, uint32_t>> path;
  for (const std::string_view name : names) {
    const auto parts = name.empty() ? std::vector<std::string_view>{} : split(name, '/');
    size_t shared = 0;
    while (shared < std::min(parts.size(), path.size()) && path[shared].first == parts[shared])
      ++shared;
    path.resize(shared);
    for (size_t i = shared; i < parts.size(); ++i) {
      const uint32_t parent = path.empty() ? kRoot : path.back().second;
      const uint32_t begin = uint32_t(machines_.size());
      topology_.push_back({parent, uint32_t(i + 1), begin, begin});
      path.emplace_back(parts[i], uint32_t(topology_.size() - 1));
    }
    const uint32_t innermost = path.empty() ? kRoot : path.back().second;
    for (const uint32_t m : by_name[name]) {
      domain_of_machine_[m] = innermost;
      machines_.push_back(m);
    }
    for (const auto& [part, node] : path) topology_[node].end = uint32_t(machines_.size());
  }
  topology_[kRoot].end = uint32_t(machines_.size());
}

}  // namespace trainyard::schedule
