// Describes the capacity that a waiting gang lacks: on which machines, and which jobs hold it
// there; or what even empty machines lack.
//
// Threads: pure. Private to this module.
#pragma once

#include <string>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/free_capacity.hpp"

namespace trainyard::schedule {

// Returns the pending reason of the gang. Requires: empty machines hold the gang, `now` does not.
std::string why_no_capacity(const Gang& gang, const std::vector<Machine>& machines,
                            const FreeCapacity& now, FreeCapacity& empty,
                            const Allocations& allocations);

// Returns the pending reason of the gang. Requires: empty machines do not hold the gang.
std::string why_never(const std::vector<HostRequest>& requests, const Gang& gang,
                      const std::vector<Machine>& machines, const FreeCapacity& empty);

// Limits the pairs of host and machine that are examined to name the shortage of each machine:
// this takes a millisecond. The reason of larger gangs has the number of hosts without capacity.
inline constexpr size_t kPairsExaminedMax = 200'000;

}  // namespace trainyard::schedule
