// Formats the response of GetQueryResults as the page of `trainyard query`.
//
// Threads: pure functions. Errors: none; members that are missing are left out.
#pragma once

#include <string>

#include "base/json.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Formats a table of the results with one column for each field, except @ptr.
std::string query_table(const OutputStyle& style, const Json& answer);
// Formats the statistics of a query that runs or has ended: "3 of 120 events match, 12.0 KiB read".
std::string query_statistics(const Json& answer);

}  // namespace trainyard::cli
