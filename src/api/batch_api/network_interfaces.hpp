// Shows the addresses of a job's hosts as the network interfaces that AWS Batch attaches to its
// containers.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <vector>

#include "domain/job.hpp"
#include "shapes/batch.hpp"

namespace trainyard::api::batch_api {

// Returns the interface of one host of an attempt; none while its address is unknown, and for
// earlier attempts, whose hosts are not stored. Requires: the job is neither an array nor
// multi-node.
std::vector<shapes::batch::NetworkInterface> network_interfaces_of(const domain::Job& job,
                                                                   const domain::Attempt& attempt,
                                                                   domain::HostIndex host);

}  // namespace trainyard::api::batch_api
