// Lists the environment variables that AWS Batch sets in a job's containers. The address of a multi-node job's main host
// is the agent's (contract/plain_container.hpp), since the launcher gives it.
//
// Threads: pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "domain/job.hpp"

namespace trainyard::batch {

// AWS_BATCH_*: what the container of a host of this attempt finds. Requires: job.spec.queue.
std::map<std::string, std::string> variables_of(const domain::Job& job, const domain::Attempt& attempt,
                                                domain::HostIndex host);
inline constexpr std::string_view kReservedVariables = "AWS_BATCH_";

}  // namespace trainyard::batch
