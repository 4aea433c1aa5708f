// All ways to lay a gang over machines, one after the other, for when laying host by host has found none.
//
// Threads: pure. Private to this room.
#pragma once

#include <optional>
#include <vector>

#include "schedule/gang.hpp"

namespace trainyard::schedule {

// By host: the index in `rooms` of where it goes; nothing when there is no way, or none was found within
// kLayoutStepsMax.
std::optional<Layout> search_layout(const Gang& gang, std::vector<Share> rooms);

}  // namespace trainyard::schedule
