// Finds the script's own error behind the failure file of SageMaker's Python SDK 3, whose drivers
// (sm_drivers) start the script in the container: they write that their command failed, or that
// the training did, while the script's exception is in the output.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::agent {

// True if the failure file says nothing but that a driver of the SDK, or its shell script, failed.
bool is_driver_failure(std::string_view failure);

// Returns "ValueError: no such column", and the traceback before it, of the last exception in the
// output that is not a launcher's; without one, the last line of the script, "train.py: error: ..",
// and then its command and the lines before it. "" if there are none. Lines of torchrun and of the
// SDK's shell script are left out. The drivers strip the lines' indentation. An exception of the
// MPI driver contains what the driver needs.
std::string script_failure(std::string_view printed);

}  // namespace trainyard::agent
