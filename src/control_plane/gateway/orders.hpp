// Computes the orders for a host from the current state of its job, and from nothing else: a host
// gets them again on each new link.
//
// Threads: pure functions. Requires: the attempt is the job's current one, and has the host.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "domain/job.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

// Returns the order to stop; its cause is `none` if the host is to continue. `stop_grace` is the
// grace period of jobs that request no other.
wire::Stop stop_order_of(const domain::Job& job, const domain::Attempt& attempt,
                         domain::HostIndex host, Duration stop_grace);
// Returns true if the host may start since the main host that it follows runs.
bool main_runs_for(const domain::Job& job, const domain::Attempt& attempt, domain::HostIndex host);
// Returns the order to upload the model of all hosts, which only the first host gets, once all
// others have drained; else nullopt.
std::optional<wire::PeersDrained> peers_order_of(const domain::Attempt& attempt,
                                                 domain::HostIndex host);

}  // namespace trainyard::gateway
