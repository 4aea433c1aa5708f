// Runs one host's part of a job in script mode, from the job's files to the exit code.
//
// This process is the first one of the container: it reaps orphans, forwards stop signals to the
// user's processes, and ends when they have ended, or when the leading host orders it.
//
// Threads: the caller's. Errors: none; an error is the job's failure, written to
// /opt/ml/output/failure.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "entry/prepare.hpp"

namespace trainyard::entry {

// The longest wait for the other hosts to join. Hosts start together, but a host may download and
// install for long before it joins; the job's time limit usually ends the job earlier. Like all
// deadlines of the loop, it counts only the time while the loop ran (loop_time.hpp).
inline constexpr std::chrono::hours kJoinMax{24};
inline constexpr Duration kConnectInterval = 200ms;
// The grace period of processes that are stopped when the end of the job is decided: their results
// are no longer needed.
inline constexpr Duration kEndGrace = 5s;
// The delay of the end on hosts that did not fail, so that the failed host reports first.
inline constexpr Duration kFailedHostLead = 2s;

int run_host(const HostSetup& setup, Clock& clock, Random& random);

}  // namespace trainyard::entry
