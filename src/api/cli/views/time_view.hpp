// Formats the responses of DescribeJobTime and GetTimeReport: the pages of `trainyard time`.
//
// Threads: pure functions. Errors: none; members that are missing are left out.
#pragma once

#include <string>

#include "base/json.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// `label`: the job's name for its user (label_of).
std::string time_page(const OutputStyle& style, const std::string& label, const Json& answer);
// `by`: what the report groups by, "user".
std::string time_table(const OutputStyle& style, const std::string& by, const Json& answer);

}  // namespace trainyard::cli
