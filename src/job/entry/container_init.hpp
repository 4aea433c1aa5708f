// Runs as the init of a reused container: starts the children that the agent orders, reports how
// they ended, and ends the processes that they left. When the agent's socket closes, the init ends,
// and the container with it.
//
// Threads: one. Errors: none: the agent gets them as reports.
#pragma once

#include "os/packet_socket.hpp"

namespace trainyard::entry {

// Returns the exit code of the init. Refuses to run unless this process is the first one of its PID
// namespace.
int run_container_init(os::PacketSocket agent);

}  // namespace trainyard::entry
