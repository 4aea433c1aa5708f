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

// `label`: the job's name for its user (label_of).
std::string explain_page(const OutputStyle& style, const std::string& label, const Json& answer,
                         Instant now);

// `name`: of the previewed job.
std::string preview_page(const OutputStyle& style, const std::string& name, const Json& answer,
                         Instant now);

}  // namespace trainyard::cli
