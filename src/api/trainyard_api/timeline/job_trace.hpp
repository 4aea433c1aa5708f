// Draws the life of a job as a trace: what its time was used for, its attempts, its status, the
// steps of the hosts of its last attempt, and the trace files that its processes wrote.
//
//   process        thread    spans
//   control plane  job       the job, and in it the uses of time, as DescribeJobTime has them
//                  attempts  each attempt
//                  status    each secondary status, with its message
//   algo-1, ..     agent     the host, and in it its states
//   FILE           its own   those of the file
//
// Instants are in the job's own time.
//
// Threads: pure function. Errors: none; what is left out is in the notes.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "domain/job.hpp"
#include "trainyard_api/timeline/file_events.hpp"

namespace trainyard::api::trainyard_api {

// The limit of a trace's events: a browser shows it at once, and a response is small enough to be
// kept in memory a few times.
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
