// Starts the OCI runtime in a child process, which first carries out a plan (namespaces, mounts).
//
// Threads: callable from anywhere. Errors: by errno.
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

// The runtime, which either runs or has ended after a failed step of the plan (`failure`).
struct StartedRuntime {
  pid_t process = -1;
  os::File ended;  // pidfd
  std::optional<ChildFailure> failure;
};

// Forks; the child carries out the plan and executes the runtime. `directory` is the
// container's directory. `input` is the standard input of the container's first process; -1: an
// empty standard input. `output` is the descriptor of its standard output and standard error. The
// caller still owns both.
Result<StartedRuntime> start_runtime(ChildPlan plan, const std::string& runtime,
                                     const std::string& directory, const std::string& id, int input,
                                     int output);

// Returns the parent of a process; 0 if it is not visible here.
int parent_of(int process);

}  // namespace trainyard::containers
