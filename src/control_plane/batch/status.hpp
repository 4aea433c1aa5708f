// Shows a job as AWS Batch does: its status, the reason of it, and the end of an attempt in the texts that retry rules
// match. Requires of all: job.spec.queue.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "domain/job.hpp"
#include "domain/stage.hpp"

namespace trainyard::batch {

std::string_view status_name(domain::Stage stage);  // "RUNNABLE"
// Of one node of a multi-node parallel job. Requires: there is such a host.
domain::Stage node_status(const domain::Job& job, domain::HostIndex host);
std::string node_status_reason(const domain::Job& job, domain::HostIndex host);

// Of an attempt of this job that failed or ended. The words of AWS, since rules match them.
domain::AttemptEnd end_of(const domain::Job& job, const domain::Attempt& attempt);
// The reason of a container's end in addition to its exit code, without the container's own output.
std::string container_reason(domain::Fault fault, const std::string& failure);
// statusReason: why it waits, or how it ended.
std::string status_reason(const domain::Job& job);

}  // namespace trainyard::batch
