// Shows a training job that AWS Batch has queued as Batch does (a service job). Below it is a training job like any
// other: both APIs show the one job, and its name is the id that Batch gives it.
//
// Threads: pure functions. Requires of all: job.spec.contract == domain::Contract::training.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "domain/job.hpp"

namespace trainyard::batch {

// `scheduled`: it has its machines, and nothing of it has begun there.
enum class ServiceStatus { submitted, pending, runnable, scheduled, starting, running, succeeded, failed };
std::string_view to_string(ServiceStatus);  // "SCHEDULED"
ServiceStatus service_status(const domain::Job& job);
// The states that a job of that status may be in.
std::vector<domain::JobState> states_of(ServiceStatus status);

// Requires: it failed or ended. In the words that AWS's rules of retrying match: "Received status from
// SageMaker:AlgorithmError: ..". What is not the user's fault is told in the same words always.
std::string service_end_of(const domain::Attempt& attempt);
// statusReason: why it waits, or how it ended.
std::string service_status_reason(const domain::Job& job);

}  // namespace trainyard::batch
