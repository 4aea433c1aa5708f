// Encodes the history of a job as an OpenTelemetry trace: a request of OTLP/HTTP in JSON
// (ExportTraceServiceRequest), which a collector accepts at /v1/traces.
//
//   job
//     Queued, QueuedAgain     time without an attempt
//     attempt 1
//       Starting, Training, ..  uses of its time
//       algo-1                the host, of the last attempt
//         running, ..         its states
//
// The ids come from domain/tracing/trace_context.hpp, so spans of the job's own processes, which
// get TRACEPARENT, are children of their host's span. An unfinished span ends at `now`.
//
// Threads: pure function. Errors: none. The limits come from job_trace.hpp.
#pragma once

#include <string>

#include "base/time.hpp"
#include "domain/job.hpp"

namespace trainyard::api::trainyard_api {

// `now`: in the job's own time. Requires: the job is not an array.
std::string otlp_trace_of(const domain::Job& job, Instant now);

}  // namespace trainyard::api::trainyard_api
