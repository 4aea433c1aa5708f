// Starts the OCI runtime as a child of this process that carries out a plan first.
//
// Threads: callable from anywhere. Errors: unavailable, denied, .. of system calls.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.hpp"
#include "containers/container_plan.hpp"
#include "os/files.hpp"

namespace trainyard::containers {

struct ChildFailure {
  size_t step;
  int error_number;
};

// Either runs, or has ended after a failed step of the plan.
struct StartedRuntime {
  pid_t process = -1;
  os::File ended;  // pidfd
  std::optional<ChildFailure> failure;
};

// Forks, carries out the plan and becomes the runtime. `directory`: the container's. `input`: its
// standard input; -1: empty.
Result<StartedRuntime> start_runtime(ChildPlan plan, const std::string& runtime,
                                     const std::string& directory, const std::string& id, int input,
                                     int output);

// The parent of a process; 0 when it is invisible.
int parent_of(int process);

}  // namespace trainyard::containers
