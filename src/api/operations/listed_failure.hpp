// Shortens the reason of a failure for lists. A principal that may list jobs may lack the
// permission to describe them, so text from the job is left out: its output, and the first word of
// its command, which the runtime quotes.
//
// Threads: pure function.
#pragma once

#include <string>

namespace trainyard::api {

// "AlgorithmError: KeyError: 'secret', exit code: 1" becomes "AlgorithmError, exit code: 1". "The
// container cannot be started: executable file `secret` not found" becomes "The container cannot be
// started". Other texts are unchanged.
std::string listed_failure(const std::string& reason);

}  // namespace trainyard::api
