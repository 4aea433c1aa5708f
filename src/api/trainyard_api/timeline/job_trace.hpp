// Renders a job as a trace for a browser: how its time was spent, its attempts, its status, the
// states of the hosts of its last attempt, and the trace files that its processes wrote.
//
//   process        thread    spans
//   control plane  job       the job, and in it the uses of time, as DescribeJobTime has them
//                  attempts  each attempt
//                  status    each secondary status, with its message
//   algo-1, ..     agent     the host, and in it its states
//   FILE           its own   the events in the file
//
// Instants are in the job's own time.
//
// Threads: pure function. Errors: none; the notes list what is left out.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "domain/job.hpp"
#include "trainyard_api/timeline/file_events.hpp"

namespace trainyard::api::trainyard_api {

// The limit of a trace's events: a browser loads it at once, and the server can hold a few such
// responses in memory.
inline constexpr size_t kTraceBytesMax = 8 << 20;
inline constexpr size_t kTracedItemsMax = 1'000;  // uses of time, attempts, statuses: the last ones
inline constexpr size_t kTracedHostsMax = 1'000;  // the first ones

struct JobTrace {
  std::string text;                // JSON
  std::vector<std::string> notes;  // with names of files that the job chose
};

// `now`: in the job's own time, which is `own_ahead` ahead of the wall clock.
// Requires: the job is not an array.
JobTrace trace_of(const domain::Job& job, const std::vector<TraceFile>& files, Instant now,
                  Duration own_ahead);

}  // namespace trainyard::api::trainyard_api
