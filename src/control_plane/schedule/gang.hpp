// A gang as this room places it: so many hosts of this share, so many of that, and where each of them goes.
//
// Threads: plain values; pure functions. Private to this room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/plan.hpp"
#include "schedule/shares.hpp"

namespace trainyard::schedule {

struct Group {
  Share share;  // of each host
  uint32_t count = 1;
};

struct Gang {
  std::vector<Group> groups;  // hosts in the order of their index
  uint32_t hosts = 0;
  double cpus = 0;   // of all hosts
  std::string note;  // what the user should know of it; "" when he is given what he asked for

  // All hosts ask for the same.
  bool even() const;
  Share share_of(uint32_t host) const;
};

// By host: the index of its machine.
using Layout = std::vector<uint32_t>;

// What is asked for, scaled down where the policy says so.
Gang gang_of(const std::vector<Ask>& asks, const std::vector<Machine>& machines, const Policy& policy);

}  // namespace trainyard::schedule
