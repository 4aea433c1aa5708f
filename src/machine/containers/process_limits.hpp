// Raises the limits of processes (setrlimit) that containers request.
//
// Threads: limits belong to the whole process: a raised limit is raised for all threads. Errors:
// none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "containers/container.hpp"

namespace trainyard::containers {

// Returns the number of a resource that setrlimit() limits, by its name in small letters.
std::optional<int> resource_of(std::string_view name);

// Raises the server's own hard limits, for all that it starts: a runtime with a user namespace of
// its own may lower limits but not raise them. A limit above the machine's is cut, and `withheld`
// gets a sentence for each.
void raise_limits(std::vector<ProcessLimit>& limits, std::vector<std::string>& withheld);

// True if this machine counts processes by user namespace, and permits limiting them so.
bool may_limit_processes_by_user(int64_t pids_max);

}  // namespace trainyard::containers
