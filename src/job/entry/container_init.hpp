// Runs as the init of a reused container, its first process: starts the children that the agent
// orders, reports how they ended, and ends whatever they left. When the agent's socket closes, it
// ends, and the container with it.
//
// Threads: one. Errors: none: the agent gets them as reports.
#pragma once

#include "os/packet_socket.hpp"

namespace trainyard::entry {

// Returns its exit code. Refuses to run unless it is the first process of its PID namespace.
int run_container_init(os::PacketSocket agent);

}  // namespace trainyard::entry
