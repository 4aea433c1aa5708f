#include "schedule/layout_search.hpp"

#include <algorithm>
#include <numeric>

namespace trainyard::schedule {
namespace {

// Searches depth first over hosts, the largest first since they have the fewest alternatives, and
// tries each machine for each. Two rules keep the search small without losing a layout: hosts with
// equal requests use machines in ascending order, and of machines with equal free capacity only the
// first is tried, since swapping the two in the rest of the layout gives the layouts of the other.
class Search {
 public:
  Search(const Gang& gang, std::vector<Share> free)
      : free_(std::move(free)), order_(gang.hosts), at_(gang.hosts) {
    for (const Group& group : gang.groups) shares_.insert(shares_.end(), group.count, group.share);
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(
        order_, [&](uint32_t a, uint32_t b) { return size_of(shares_[a]) > size_of(shares_[b]); });
  }

  std::optional<Layout> run() {
    Share requested, there;
    for (const Share& share : shares_) requested = plus(requested, share);
    for (const Share& capacity : free_)
      there =
          plus(there, {std::max(0.0, capacity.cpus), std::max<int64_t>(0, capacity.memory_bytes),
                       std::max<int64_t>(0, capacity.gpus)});
    if (!within(requested, there) || !place(0)) return std::nullopt;
    return at_;
  }

 private:
  // Places the hosts from position `depth` of the order on.
  bool place(size_t depth) {
    if (depth == order_.size()) return true;
    const uint32_t host = order_[depth];
    const bool repeats = depth > 0 && same(shares_[order_[depth - 1]], shares_[host]);
    std::vector<uint32_t> tried;
    for (uint32_t m = repeats ? at_[order_[depth - 1]] : 0; m < free_.size(); ++m) {
      if (++steps_ > kLayoutStepsMax) return false;
      if (!within(shares_[host], free_[m]) ||
          std::ranges::any_of(tried, [&](uint32_t other) { return same(free_[other], free_[m]); }))
        continue;
      tried.push_back(m);
      const Share before = free_[m];
      free_[m] = minus(before, shares_[host]);
      at_[host] = m;
      if (place(depth + 1)) return true;
      free_[m] = before;
    }
    return false;
  }

  std::vector<Share> free_;    // free on each machine
  std::vector<Share> shares_;  // by host
  std::vector<uint32_t> order_;
  Layout at_;  // the positions of the hosts placed so far
  size_t steps_ = 0;
};

}  // namespace

std::optional<Layout> search_layout(const Gang& gang, std::vector<Share> free) {
  return Search(gang, std::move(free)).run();
}

}  // namespace trainyard::schedule
