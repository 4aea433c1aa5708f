// Describes a job in AWS Batch's terms: its status, the status reason, and the end of an attempt in
// the texts that retry rules match. All functions require job.spec.queue.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "domain/job.hpp"
#include "domain/stage.hpp"

namespace trainyard::batch {

std::string_view status_name(domain::Stage stage);  // "RUNNABLE"
// Return the status of one node of a multi-node parallel job, and its reason. Requires: host <
// job.spec.hosts().
domain::Stage node_status(const domain::Job& job, domain::HostIndex host);
std::string node_status_reason(const domain::Job& job, domain::HostIndex host);

// Describes the end of an attempt of this job in AWS's texts, since retry rules match them.
domain::AttemptEnd end_of(const domain::Job& job, const domain::Attempt& attempt);
// Returns the reason that is shown with a container's exit code, without the container's output.
std::string container_reason(domain::Fault fault, const std::string& failure);
// Returns the statusReason of an attempt: the text that retry rules match, then the signal or the
// memory limit that ended its container.
std::string attempt_status_reason(const domain::Job& job, const domain::Attempt& attempt);
// Returns the statusReason: why it waits, or how it ended.
std::string status_reason(const domain::Job& job);

}  // namespace trainyard::batch
