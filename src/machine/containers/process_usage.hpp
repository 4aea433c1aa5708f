// Sums the usage of processes, for machines that do not measure usage per container.
//
// Threads: callable from anywhere. Errors: those of files.
#pragma once

#include "base/result.hpp"
#include "containers/container.hpp"

namespace trainyard::containers {

// Returns the usage of all other processes of this PID namespace. A process that has ended is
// counted while its parent lives.
Result<ContainerUsage> usage_of_other_processes();

// Returns the `count_max` processes that use most memory, largest first, without processes that
// have ended.
std::vector<ProcessMemory> largest(const std::vector<int>& processes, size_t count_max);

}  // namespace trainyard::containers
