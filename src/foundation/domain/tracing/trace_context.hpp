// Computes the ids of the trace of a job and of its spans, in the form of OpenTelemetry and W3C
// Trace Context.
//
// The ids are computed from the identity of the job and never stored: the control plane, the
// processes of the job and each reader of the ledger compute the same ids. They are not secret.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "domain/job.hpp"

namespace trainyard::domain {

// The variable with the trace context of a job's processes, unless the request of the job sets it.
inline constexpr const char* kTraceParentVariable = "TRACEPARENT";

std::string trace_id_of(const Job& job);  // 32 hexadecimal digits
// Returns the id of a span: 16 hexadecimal digits. `place` is the position of the span in the
// trace: "job", "attempt/2".
std::string span_id_of(const Job& job, std::string_view place);
std::string attempt_place(uint32_t attempt);
std::string host_place(uint32_t attempt, HostIndex host);
// Returns the trace context of a host's processes, whose spans become children of the span of the
// host: "00-<trace id>-<span id>-01".
std::string trace_parent_of(const Job& job, uint32_t attempt, HostIndex host);

}  // namespace trainyard::domain
