// Describes a training job in a queue of AWS Batch in Batch's terms (a service job). It is an
// ordinary training job, which both APIs show; its name is the id that Batch assigns.
//
// Threads: pure functions. All require: job.spec.contract == domain::Contract::training.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "domain/job.hpp"

namespace trainyard::batch {

// `scheduled`: its hosts are placed on machines, but none prepares yet.
enum class ServiceStatus {
  submitted,
  pending,
  runnable,
  scheduled,
  starting,
  running,
  succeeded,
  failed
};
std::string_view to_string(ServiceStatus);  // "SCHEDULED"
ServiceStatus service_status(const domain::Job& job);
// Returns the states that a job with that status may have.
std::vector<domain::JobState> states_of(ServiceStatus status);

// Describes an attempt's end in the texts that AWS's retry rules match: "Received status from
// SageMaker:AlgorithmError: ..". Internal failures always have the same text. Requires: the attempt
// failed or ended.
std::string service_end_of(const domain::Attempt& attempt);
// Returns the statusReason: why it waits, or how it ended.
std::string service_status_reason(const domain::Job& job);

}  // namespace trainyard::batch
