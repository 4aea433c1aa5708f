// Formats ExplainJob's and PreviewJob's responses: the pages of `trainyard explain` and of
// `trainyard submit --preview`.
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

// `name`: of the job, which does not exist yet.
std::string preview_page(const Looks& looks, const std::string& name, const Json& answer,
                         Instant now);

}  // namespace trainyard::cli
