// Formats ExplainJob's response: the page of `trainyard explain`.
//
// Threads: pure functions. Errors: none; members that are missing are left out.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/time.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// `label`: the job, as its user calls it.
std::string explain_page(const Looks& looks, const std::string& label, const Json& answer,
                         Instant now);

}  // namespace trainyard::cli
