// Locates the OCI runtime, and names the files of a container's directory that it reads or
// writes.
//
// Threads: callable from anywhere. Errors: not_found.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kProcessFile = "pid";       // the first process, for readers outside
constexpr const char* kProcessPipe = "pid.told";  // the runtime writes its process number here
constexpr const char* kRuntimeLog = "runtime.log";
// Below the runtime's directory of a container: the program of its filter of system calls.
constexpr const char* kRuntimeFilter = "seccomp.bpf";

// Returns the path of crun, from the directories of PATH.
Result<std::string> find_runtime();

}  // namespace trainyard::containers
