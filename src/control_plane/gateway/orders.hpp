// Computes the orders that the current state of a job gives to one of its hosts. A host gets them
// again on each new link, so they depend on nothing else.
//
// Threads: pure functions. Requires: the attempt is the job's current one, and has the host.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "domain/job.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

// Returns the order to stop; its cause is `none` if the host is to continue. `stop_grace`: of jobs
// that request no other.
wire::Stop stop_order_of(const domain::Job& job, const domain::Attempt& attempt,
                         domain::HostIndex host, Duration stop_grace);
// True for a host that follows a main host which runs: it may start.
bool main_runs_for(const domain::Job& job, const domain::Attempt& attempt, domain::HostIndex host);
// Returns what the first host needs to upload the model of all; nothing for other hosts, and until
// all others have drained.
std::optional<wire::PeersDrained> peers_order_of(const domain::Attempt& attempt,
                                                 domain::HostIndex host);

}  // namespace trainyard::gateway
