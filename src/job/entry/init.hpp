// Acts as the first process (PID 1) of a container with one program: signals do not end a PID 1
// without a handler, and a PID 1 must reap orphans, which most programs do not.
//
// Threads: the caller's, the only one of the process. Errors: none; the exit code and the report to
// the agent show them.
#pragma once

#include <string>
#include <vector>

#include "os/packet_socket.hpp"

namespace trainyard::entry {

// "--init PROGRAM ARGUMENT..": starts the program and reports to the agent that it runs, or why it
// does not (contract/container_init.hpp). Forwards each signal to the program and, if the signal
// ends the program, to the processes that it leaves (init_child.hpp). Returns the program's exit
// code: 128+n for signal n, 127 if it was not found, 126 if it cannot be run. `environment`: the
// program's, "NAME=VALUE".
int run_init(const std::vector<std::string>& arguments, std::vector<std::string> environment,
             os::PacketSocket agent);

}  // namespace trainyard::entry
