#include "schedule/layout_search.hpp"

#include <algorithm>
#include <numeric>

namespace trainyard::schedule {
namespace {

// Depth first over hosts, the larger first as they have less choice, each on each machine. Two things keep it small and
// lose no way: hosts that ask for the same stand on machines in ascending order, and of machines with equal room left
// only the first is tried, since swapping the two in all that follows gives the other's ways.
class Search {
 public:
  Search(const Gang& gang, std::vector<Share> rooms)
      : rooms_(std::move(rooms)), order_(gang.hosts), at_(gang.hosts) {
    for (const Group& group : gang.groups) shares_.insert(shares_.end(), group.count, group.share);
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(
        order_, [&](uint32_t a, uint32_t b) { return size_of(shares_[a]) > size_of(shares_[b]); });
  }

  std::optional<Layout> run() {
    Share asked, there;
    for (const Share& share : shares_) asked = plus(asked, share);
    for (const Share& room : rooms_)
      there = plus(there, {std::max(0.0, room.cpus), std::max<int64_t>(0, room.memory_bytes),
                           std::max<int64_t>(0, room.gpus)});
    if (!within(asked, there) || !place(0)) return std::nullopt;
    return at_;
  }

 private:
  // The hosts from the depth-th of the order on.
  bool place(size_t depth) {
    if (depth == order_.size()) return true;
    const uint32_t host = order_[depth];
    const bool repeats = depth > 0 && same(shares_[order_[depth - 1]], shares_[host]);
    std::vector<uint32_t> tried;
    for (uint32_t m = repeats ? at_[order_[depth - 1]] : 0; m < rooms_.size(); ++m) {
      if (++steps_ > kLayoutStepsMax) return false;
      if (!within(shares_[host], rooms_[m]) ||
          std::ranges::any_of(tried, [&](uint32_t other) { return same(rooms_[other], rooms_[m]); }))
        continue;
      tried.push_back(m);
      const Share before = rooms_[m];
      rooms_[m] = minus(before, shares_[host]);
      at_[host] = m;
      if (place(depth + 1)) return true;
      rooms_[m] = before;
    }
    return false;
  }

  std::vector<Share> rooms_;   // left on each machine
  std::vector<Share> shares_;  // by host
  std::vector<uint32_t> order_;
  Layout at_;  // of the hosts that are placed
  size_t steps_ = 0;
};

}  // namespace

std::optional<Layout> search_layout(const Gang& gang, std::vector<Share> rooms) {
  return Search(gang, std::move(rooms)).run();
}

}  // namespace trainyard::schedule
