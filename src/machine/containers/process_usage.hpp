// Adds up the usage of the processes next to this one: for machines that have no usage per
// container.
//
// Threads: callable from anywhere. Errors: those of files.
#pragma once

#include "base/result.hpp"
#include "containers/container.hpp"

namespace trainyard::containers {

// Usage of all processes of this PID namespace but this one. A process that has ended counts as
// long as its parent lives.
Result<ContainerUsage> usage_of_other_processes();

// Returns those of the processes that use most memory, largest first. Processes that have ended are
// left out.
std::vector<ProcessMemory> largest(const std::vector<int>& processes, size_t count_max);

}  // namespace trainyard::containers
