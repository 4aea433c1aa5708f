// Formats a campaign for a terminal: its plan, the state of its regions, and its results.
//
// `campaign` is the API's Campaign.
//
// Threads: pure functions. Errors: none; missing members are not shown.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/time.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Formats the plan of a dry run: for each row its region with the reason, the data to copy, the
// cost per hour, and the differing columns.
std::string plan_page(const OutputStyle& style, const Json& campaign);
// Formats a line for the campaign, and one for each of its regions.
std::string regions_page(const OutputStyle& style, const Json& campaign, Instant now);
// Formats a region as one line, for output that cannot be redrawn.
std::string region_line(const Json& region);
// Formats a table of all rows with their metrics, the best row, and the totals of each region.
std::string results_page(const OutputStyle& style, const Json& campaign, Instant now);
std::string campaigns_table(const OutputStyle& style, const Json& answer, Instant now);
// Formats QueryCatalogue's answer.
std::string answer_table(const OutputStyle& style, const Json& answer);

}  // namespace trainyard::cli
