// What lists tell of a failure. Those who may list jobs need not be those who may describe them, so the words that may be the
// job's own are left out: its output, and the first word of its command, which the runtime quotes.
//
// Threads: pure function.
#pragma once

#include <string>

namespace trainyard::api {

// "AlgorithmError: KeyError: 'secret', exit code: 1" is "AlgorithmError, exit code: 1"; "The container cannot be started:
// executable file `secret` not found" is "The container cannot be started". Other texts stay.
std::string listed_failure(const std::string& reason);

}  // namespace trainyard::api
