// Applies starts and the passing of time to a snapshot, for projections and simulations, which plan
// again at later instants.
//
// Threads: pure.
#pragma once

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// Returns the waiting job as it runs from `now` on.
Running running_of(const WaitingJob& waiting, const Start& start, Instant now);

// Lets the past usage of shares decay, and adds what running jobs hold over that time.
void count_usage(Snapshot& snapshot, Duration passed);

}  // namespace trainyard::schedule
