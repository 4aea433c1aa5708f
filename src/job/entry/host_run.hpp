// Runs one host's part of a job in script mode, from its files to the exit code.
//
// The first process of the container: it reaps what others leave, tells the user's processes to stop when it is
// told, and ends when they have ended, or when the leading host says so.
//
// Threads: the caller's one. Errors: none; what goes wrong is the job's failure, written to
// /opt/ml/output/failure.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"
#include "entry/prepare.hpp"

namespace trainyard::entry {

// Hosts start together, but one may fetch and install for long before it joins the others; the job's own time
// limit ends it earlier. Like all deadlines of the loop it counts the time that passed while the loop ran (loop_time.hpp).
inline constexpr std::chrono::hours kJoinMax{24};
inline constexpr Duration kConnectInterval = 200ms;
// Processes that are told to end, once the job's end is known: nothing of theirs counts any more.
inline constexpr Duration kEndGrace = 5s;
// On a host that did not fail itself: the platform hears of the failure from the host that did, if it is quick.
inline constexpr Duration kFailedHostLead = 2s;

int run_host(const Station& station, Clock& clock, Random& random);

}  // namespace trainyard::entry
