// Acts as the first process of a container of one program, so that the program need not handle the
// duties of PID 1: a first process without a handler is not ended by a signal, and has to reap
// orphans.
//
// Threads: the caller's one; there is no other in the process. Errors: none; they show in the exit
// code, and in the report to the agent.
#pragma once

#include <string>
#include <vector>

#include "os/packet_socket.hpp"

namespace trainyard::entry {

// "--init PROGRAM ARGUMENT..": starts the program, reports to the agent that it runs or why it does
// not (contract/container_init.hpp), forwards each signal to it and, if that ends it, to what it
// leaves (init_child.hpp), and ends with it and its code: 128+n for signal n, 127 when it is not
// found, 126 when it cannot be run. `environment`: of the program, "NAME=VALUE".
int run_init(const std::vector<std::string>& arguments, std::vector<std::string> environment,
             os::PacketSocket agent);

}  // namespace trainyard::entry
