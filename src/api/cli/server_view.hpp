// Formats DescribeServer's response as the page of `trainyard status`.
//
// Threads: pure functions. Errors: none; members that are missing are left out.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/time.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

std::string server_page(const OutputStyle& style, const Json& answer, Instant now);

}  // namespace trainyard::cli
