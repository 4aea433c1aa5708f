// Raises the limits of processes (setrlimit) that containers request.
//
// Threads: limits belong to the process, so a raised limit applies to all threads. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "containers/container.hpp"

namespace trainyard::containers {

// Returns the number of a resource of setrlimit() by its name in lower case; nullopt: unknown name.
std::optional<int> resource_of(std::string_view name);

// Raises the hard limits of this process, which its children inherit, since a runtime in its own
// user namespace can lower limits but not raise them. A limit above that of the machine is reduced
// to it, and a sentence about it is added to `withheld`.
void raise_limits(std::vector<ProcessLimit>& limits, std::vector<std::string>& withheld);

// Returns true if this machine counts processes by user namespace, and permits this limit.
bool may_limit_processes_by_user(int64_t pids_max);

}  // namespace trainyard::containers
