// Finds the OCI runtime, and defines the names of the files in a container's directory that it
// reads or writes.
//
// Threads: callable from anywhere. Errors: not_found.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kProcessFile = "pid";       // number of the first process, for other programs
constexpr const char* kProcessPipe = "pid.told";  // the runtime writes its process number here
constexpr const char* kRuntimeLog = "runtime.log";
// The program of the container's filter of system calls, below the runtime's directory of the
// container.
constexpr const char* kRuntimeFilter = "seccomp.bpf";

// Returns the path of crun, from the directories of PATH.
Result<std::string> find_runtime();

}  // namespace trainyard::containers
