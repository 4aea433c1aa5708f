// What a gang that waits lacks, on which machines, and who holds it there; and what a gang lacks that not even empty
// machines could hold.
//
// Threads: pure. Private to this room.
#pragma once

#include <string>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/room.hpp"

namespace trainyard::schedule {

// Requires: empty machines hold the gang, `now` does not.
std::string why_no_room(const Gang& gang, const std::vector<Machine>& machines, const Room& now, Room& empty,
                        const Allocations& allocations);

// Requires: empty machines do not hold the gang.
std::string why_never(const std::vector<Ask>& asks, const Gang& gang, const std::vector<Machine>& machines,
                      const Room& empty);

// Looked at to name what is missing machine by machine: a millisecond. Larger gangs are told how many hosts lack room.
inline constexpr size_t kPlacesLookedAtMax = 200'000;

}  // namespace trainyard::schedule
