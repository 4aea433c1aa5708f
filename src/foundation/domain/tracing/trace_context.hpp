// Names the trace of a job and the spans in it, in the form of OpenTelemetry and W3C Trace Context.
//
// The ids are computed from what identifies a job, so nothing stores them: the control plane, the
// processes of the job and each reader of the ledger have the same. They are not secret.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "domain/job.hpp"

namespace trainyard::domain {

// The variable with the context of a job's processes, where the job's request does not set it.
inline constexpr const char* kTraceParentVariable = "TRACEPARENT";

std::string trace_id_of(const Job& job);  // 32 hexadecimal digits
// 16 hexadecimal digits. `place`: a span's place in the trace: "job", "attempt/2".
std::string span_id_of(const Job& job, std::string_view place);
std::string attempt_place(uint32_t attempt);
std::string host_place(uint32_t attempt, HostIndex host);
// The context of a host's processes, whose spans become children of the host's:
// "00-<trace id>-<span id>-01".
std::string trace_parent_of(const Job& job, uint32_t attempt, HostIndex host);

}  // namespace trainyard::domain
