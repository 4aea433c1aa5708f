// Locates the OCI runtime, and names the files of a container's directory that it reads.
//
// Threads: callable from anywhere. Errors: not_found.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

constexpr const char* kConfigFile = "config.json";

// Returns the path of crun, from the directories of PATH.
Result<std::string> find_runtime();

}  // namespace trainyard::containers
