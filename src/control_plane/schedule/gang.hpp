// Describes a gang as this module places it: groups of equal hosts, and the machine of each host.
//
// Threads: plain values; pure functions. Private to this module.
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
  std::string note;  // shown to the user; "" when the gang gets what was requested

  // Returns true if all hosts request the same share.
  bool even() const;
  Share share_of(uint32_t host) const;
};

// By host: the index of its machine.
using Layout = std::vector<uint32_t>;

// Returns the gang of a request, scaled down where the policy says so.
Gang gang_of(const std::vector<HostRequest>& requests, const std::vector<Machine>& machines,
             const Policy& policy);

}  // namespace trainyard::schedule
