// Topology is a tree of domains, which shows which machines are near each other:
// "room-1/row-2/rack-7" lies in "room-1/row-2", and that in "room-1".
//
// Threads: immutable. Private to this module.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

class Topology {
 public:
  struct Domain {
    uint32_t parent = 0;  // the root is its own parent
    uint32_t depth = 0;   // distance from the root
    uint32_t begin = 0, end = 0;
  };
  static constexpr uint32_t kRoot = 0;

  // Keeps no reference to `machines`.
  explicit Topology(const std::vector<Machine>& machines);

  // Returns the root first, and each domain before the domains in it.
  const std::vector<Domain>& all() const { return topology_; }
  bool flat() const { return topology_.size() == 1; }
  // Returns the innermost domain of the machine.
  uint32_t of(uint32_t machine) const { return domain_of_machine_[machine]; }
  // Returns the machines of a domain, in no particular order.
  std::span<const uint32_t> machines(uint32_t node) const {
    return std::span(machines_).subspan(topology_[node].begin,
                                        topology_[node].end - topology_[node].begin);
  }

 private:
  std::vector<Domain> topology_;
  std::vector<uint32_t> domain_of_machine_;
  std::vector<uint32_t> machines_;  // the machines of a domain are adjacent
};

}  // namespace trainyard::schedule
