// A campaign as a person sees it: its plan, its regions while it runs, its results.
//
// Threads: pure functions. Errors: none; `campaign` is the API's Campaign, and what is not in it is not drawn.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/time.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Of a dry run: where each row would run and why, what is copied, what it costs an hour, what differs.
std::string plan_page(const Looks& looks, const Json& campaign);
// A line for the campaign, and one for each of its regions.
std::string regions_page(const Looks& looks, const Json& campaign, Instant now);
// Each region in one line: for what cannot be drawn again.
std::string region_line(const Looks& looks, const Json& region);
// One table of all rows with their metrics, the best one named, and a sum for each region.
std::string results_page(const Looks& looks, const Json& campaign, Instant now);
std::string campaigns_table(const Looks& looks, const Json& answer, Instant now);
// QueryCatalogue's answer.
std::string answer_table(const Looks& looks, const Json& answer);

}  // namespace trainyard::cli
