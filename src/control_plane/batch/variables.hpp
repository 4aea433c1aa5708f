// Lists the environment variables that AWS Batch sets in a job's containers. The agent adds the
// address of a multi-node job's main host (contract/plain_container.hpp), which the launcher
// assigns.
//
// Threads: pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "domain/job.hpp"

namespace trainyard::batch {

// Returns the variables AWS_BATCH_* for the container of a host of this attempt. Requires:
// job.spec.queue.
std::map<std::string, std::string> variables_of(const domain::Job& job,
                                                const domain::Attempt& attempt,
                                                domain::HostIndex host);
inline constexpr std::string_view kReservedVariables = "AWS_BATCH_";

}  // namespace trainyard::batch
