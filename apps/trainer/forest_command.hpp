// Runs the command `randomcutforest` of trainyard-trainer: a job, or the rows of a request.
//
// Threads: confined to one. Errors: returned as values.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::apps {

// `arguments` follow the command. Returns the exit code. A job catches SIGTERM and SIGINT.
Result<int> run_forest_command(const std::vector<std::string>& arguments);

}  // namespace trainyard::apps
