// Adds the events of trace files that a job wrote to the job's trace, shifted to the job's clock.
//
// Each process of a file becomes a process of the trace that is named after the file, and keeps its
// threads. Members of an event that viewers use are copied, within limits; others are left out.
// Instants are rounded down to microseconds, so nested spans stay nested.
//
// Threads: pure function. Errors: none; the notes list what is left out.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "trainyard_api/timeline/trace_events.hpp"

namespace trainyard::api::trainyard_api {

struct TraceFile {
  std::string name;   // for users
  std::string bytes;  // the file, or its beginning
  bool whole = true;
};

// TraceFrame is the period of a job, in its own time.
struct TraceFrame {
  Instant begin, end;
  Instant trained;       // the beginning of files with an unknown clock
  Duration own_ahead{};  // how far the job's own time is ahead of the wall clock
};

inline constexpr int64_t kFileProcessesBegin = 1'000'000;  // above those of hosts
inline constexpr int64_t kFileProcessesMax = 100;          // in one file

// `bytes_max`: of each file's events. Adds to `notes`.
void add_file_events(const std::vector<TraceFile>& files, const TraceFrame& frame, size_t bytes_max,
                     TraceEvents& events, std::vector<std::string>& notes);

}  // namespace trainyard::api::trainyard_api
