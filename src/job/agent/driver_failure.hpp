// Finds the script's own error in the output of a job of SageMaker's Python SDK 3. The drivers of
// this SDK (sm_drivers) start the script in the container; their failure file says only that a
// command or the training failed.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::agent {

// True if the failure file says only that a driver of the SDK, or its shell script, failed.
bool is_driver_failure(std::string_view failure);

// Returns the last exception in the output that no launcher raised, followed by its traceback:
// "ValueError: no such column\nTraceback .." Without an exception, returns the script's last line
// ("train.py: error: .."), followed by its command and the lines before; without these, "". Leaves
// out the lines of torchrun and of the SDK's shell script. Expects lines without indentation, which
// the drivers strip. Adds a hint to an exception of the MPI driver.
std::string script_failure(std::string_view printed);

}  // namespace trainyard::agent
