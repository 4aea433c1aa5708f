// Searches all layouts of a gang. It is used when placing host by host has failed.
//
// Threads: pure. Private to this module.
#pragma once

#include <optional>
#include <vector>

#include "schedule/gang.hpp"

namespace trainyard::schedule {

// Returns by host the index of its machine; nullopt if no layout exists or none was found within
// kLayoutStepsMax.
std::optional<Layout> search_layout(const Gang& gang, std::vector<Share> free);

}  // namespace trainyard::schedule
