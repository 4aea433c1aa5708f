// Formats the response of GetQueryResults: the page of `trainyard query`.
//
// Threads: pure functions. Errors: none; members that are missing are left out.
#pragma once

#include <string>

#include "base/json.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// A table with the fields of the results as its columns, without @ptr.
std::string query_table(const Looks& looks, const Json& answer);
// "3 of 120 events match, 12.0 KiB read": of a query that runs or has ended.
std::string query_statistics(const Json& answer);

}  // namespace trainyard::cli
