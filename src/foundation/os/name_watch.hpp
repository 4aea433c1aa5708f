// Waits until a name appears in a directory.
//
// Threads: callable from anywhere; blocks. Errors: not_found (no such directory), exhausted (too
// many watches).
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::os {

// Returns true once the name exists; false if it does not exist after `at_most`.
Result<bool> await_name(const std::string& directory, const std::string& name, Duration at_most);

}  // namespace trainyard::os
