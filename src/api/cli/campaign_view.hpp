// Formats a campaign for a terminal: its plan, the state of its regions, and its results.
//
// Threads: pure functions. Errors: none; `campaign` is the API's Campaign, and missing members are
// not shown.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/time.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// For a dry run: each row's region with the reason, the data to copy, the cost per hour, and the
// differing columns.
std::string plan_page(const Looks& looks, const Json& campaign);
// A line for the campaign, and one for each of its regions.
std::string regions_page(const Looks& looks, const Json& campaign, Instant now);
// One region in one line, for output that cannot be redrawn.
std::string region_line(const Json& region);
// A table of all rows with their metrics, the best row, and the totals of each region.
std::string results_page(const Looks& looks, const Json& campaign, Instant now);
std::string campaigns_table(const Looks& looks, const Json& answer, Instant now);
// Formats QueryCatalogue's answer.
std::string answer_table(const Looks& looks, const Json& answer);

}  // namespace trainyard::cli
