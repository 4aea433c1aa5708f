// Describes for FailureReason, in one sentence, why a job's image cannot be used: which image, why,
// and which setting or command helps. The complete output of the tools is for the job's log.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>

#include "agent/lifecycle.hpp"
#include "domain/image.hpp"

namespace trainyard::agent {

// `name`: as in the request. `error`: from containers::unpack_image. The fault is the user's,
// except when a registry other than AWS's is unavailable, or the machine fails: then the job is
// retried.
Failure image_failure(const domain::Image& image, const std::string& name, const Error& error);

// Returns a hint for "program not found" errors: "" unless the job runs on the machine's own system
// in place of the image that AWS would have pulled.
std::string replaced_image_hint(const domain::Image& image, const std::string& name);

}  // namespace trainyard::agent
