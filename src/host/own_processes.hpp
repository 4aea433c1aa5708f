// What the processes beside this one use, counted one by one: for machines that count nothing by container.
//
// Threads: callable from anywhere. Errors: those of files.
#pragma once

#include "base/result.hpp"
#include "host/container.hpp"

namespace trainyard::host {

// Of all processes of this PID namespace but this one. What has ended counts as long as its parent lives.
Result<ContainerUsage> usage_of_own_processes();

}  // namespace trainyard::host
