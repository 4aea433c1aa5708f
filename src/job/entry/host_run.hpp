// Runs one host's part of a job in script mode, from its files to the exit code.
//
// The first process of the container: it reaps orphans, forwards stop signals to the user's
// processes, and ends when they have ended, or when the leading host orders it.
//
// Threads: the caller's one. Errors: none; an error is the job's failure, written to
// /opt/ml/output/failure.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "entry/prepare.hpp"

namespace trainyard::entry {

// Hosts start together, but one may download and install for long before it joins the others; the
// job's own time limit ends it earlier. Like all deadlines of the loop it counts the time that
// passed while the loop ran (loop_time.hpp).
inline constexpr std::chrono::hours kJoinMax{24};
inline constexpr Duration kConnectInterval = 200ms;
// For processes that are stopped once the job's end is known: their results no longer count.
inline constexpr Duration kEndGrace = 5s;
// On a host that did not fail itself: gives the host that did the time to report the failure first.
inline constexpr Duration kFailedHostLead = 2s;

int run_host(const HostSetup& setup, Clock& clock, Random& random);

}  // namespace trainyard::entry
