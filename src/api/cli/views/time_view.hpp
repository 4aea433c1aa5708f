// Formats the responses of DescribeJobTime and GetTimeReport: the pages of `trainyard time`.
//
// Threads: pure functions. Errors: none; members that are missing are left out.
#pragma once

#include <string>

#include "base/json.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// `label`: the job, as its user calls it.
std::string time_page(const Looks& looks, const std::string& label, const Json& answer);
// `by`: what the groups are.
std::string time_table(const Looks& looks, const std::string& by, const Json& answer);

}  // namespace trainyard::cli
