// Allocations counts what running jobs, warm pools and the starts of this plan hold, and the latest
// instants at which it becomes free.
//
// Threads: confined to one. Lifetime: refers to the snapshot. Private to this module.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schedule/gang.hpp"

namespace trainyard::schedule {

struct HeldHost {
  uint32_t machine = 0;
  Share share;
};

struct Allocation {
  const std::string* holder = nullptr;           // as users see it
  const std::vector<Need>* needs = nullptr;      // of limits; nullptr: none
  const std::vector<Demand>* demands = nullptr;  // of a quota share; nullptr: none
  const Running* running = nullptr;              // nullptr: a pool, or a job that this plan starts
  std::optional<uint32_t> queue;
  const std::string* share = nullptr;  // of the queue
  double cpus = 0;
  std::optional<Instant> ends;  // at the latest, never before now
  uint32_t hosts_begin = 0, hosts_end = 0;
};

class Allocations {
 public:
  // Requires: the snapshot outlives it.
  Allocations(const Snapshot& snapshot, Instant now);

  const std::vector<Allocation>& all() const { return all_; }
  std::span<const HeldHost> hosts(const Allocation& allocation) const {
    return std::span(hosts_).subspan(allocation.hosts_begin,
                                     allocation.hosts_end - allocation.hosts_begin);
  }
  // The allocations with a known end, in the order of their ends.
  const std::vector<uint32_t>& by_end();

  void start(const WaitingJob& waiting, const Choice* choice, const Gang& gang,
             const Layout& layout, std::optional<Instant> ends);
  // Gives the job what the pool-th pool of the snapshot holds.
  void take_over(size_t pool, const WaitingJob& waiting, const Choice* choice,
                 std::optional<Instant> ends);

 private:
  void hold(Allocation& allocation, const std::vector<Placement>& hosts);

  std::unordered_map<std::string_view, uint32_t> machines_;
  std::vector<Allocation> all_;
  std::vector<HeldHost> hosts_;
  size_t first_pool_ = 0;
  std::vector<uint32_t> by_end_;  // its first sorted_ elements are in order
  size_t sorted_ = 0;
};

}  // namespace trainyard::schedule
