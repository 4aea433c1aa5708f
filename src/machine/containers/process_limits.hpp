// Limits of processes (setrlimit) that a container asks for.
//
// Threads: of the whole process: what is raised here is raised for all. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "containers/container.hpp"

namespace trainyard::containers {

// The number of a resource that setrlimit() limits, by its name in small letters.
std::optional<int> resource_of(std::string_view name);

// A runtime may lower our limits, but who has a user namespace of its own may raise none: so the hard ones are raised here,
// for all that we start. What the machine does not allow is cut to what it does, and said, a sentence each.
void raise_limits(std::vector<ProcessLimit>& limits, std::vector<std::string>& withheld);

// Whether this machine counts processes by user namespace, and lets us limit them so.
bool may_limit_processes_by_user(int64_t pids_max);

}  // namespace trainyard::containers
