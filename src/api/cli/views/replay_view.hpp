// Formats the response of ReplayJobs: the page of `trainyard replay`.
//
// Threads: pure functions. Errors: none; members that are missing are left out.
#pragma once

#include <string>

#include "base/json.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Formats one column for each outcome, the best value of each row in green, the use of machines
// over time, and the jobs that are affected most.
std::string replay_page(const Looks& looks, const Json& answer);

}  // namespace trainyard::cli
