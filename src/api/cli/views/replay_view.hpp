// Formats the response of ReplayJobs as the page of `trainyard replay`.
//
// Threads: pure functions. Errors: none; members that are missing are left out.
#pragma once

#include <string>

#include "base/json.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Formats a table with a column for each outcome and the best value of each row in green, the use
// of machines over time, and the most affected jobs.
std::string replay_page(const OutputStyle& style, const Json& answer);

}  // namespace trainyard::cli
