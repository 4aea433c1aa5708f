// The keeper of a container that serves one child after another: its first process, which starts what the agent orders,
// says how it ended, and ends whatever it left. When the agent's socket closes, it ends, and the container with it.
//
// Threads: one. Errors: none: what cannot be done is answered.
#pragma once

#include "os/packet_socket.hpp"

namespace trainyard::entry {

// Returns its exit code. Refuses where it is not the first process of its PID namespace.
int keep(os::PacketSocket agent);

}  // namespace trainyard::entry
