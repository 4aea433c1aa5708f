// Formats the page of `trainyard top`: what each host of the running jobs uses.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/job_view.hpp"

namespace trainyard::cli {

// Shows hosts with bars and sparklines, as many as fit on the terminal.
std::string top_page(const OutputStyle& style, const std::vector<JobView>& jobs, Instant now);

}  // namespace trainyard::cli
