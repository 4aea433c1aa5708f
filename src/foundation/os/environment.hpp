// Reads the environment of this process.
//
// Threads: callable from anywhere, while no thread changes the environment. Errors: none.
#pragma once

#include <string>

namespace trainyard::os {

// Returns the value of a variable; "" if it is not set.
std::string environment_variable(const char* name);

}  // namespace trainyard::os
