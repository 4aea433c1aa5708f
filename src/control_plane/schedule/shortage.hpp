// Finds what a waiting gang lacks, on which machines, and which jobs hold it there; and what a gang
// lacks that even empty machines could not hold.
//
// Threads: pure. Private to this module.
#pragma once

#include <string>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/free_capacity.hpp"

namespace trainyard::schedule {

// Requires: empty machines hold the gang, `now` does not.
std::string why_no_capacity(const Gang& gang, const std::vector<Machine>& machines,
                            const FreeCapacity& now, FreeCapacity& empty,
                            const Allocations& allocations);

// Requires: empty machines do not hold the gang.
std::string why_never(const std::vector<HostRequest>& requests, const Gang& gang,
                      const std::vector<Machine>& machines, const FreeCapacity& empty);

// Pairs of host and machine that are examined to name the shortage machine by machine: a
// millisecond. Larger gangs get the number of hosts that lack capacity.
inline constexpr size_t kPairsExaminedMax = 200'000;

}  // namespace trainyard::schedule
