// Ends TCP connections whose peer has vanished: its machine lost power, or a network or firewall
// drops all packets (a half-open connection). Without this an idle connection would exist forever,
// and one with unacknowledged bytes for a quarter of an hour.
//
// The kernel probes an idle connection after `idle` and then every `interval`. The connection ends
// with ETIMEDOUT when `dead_after` has passed since the peer's last packet, or since it last
// acknowledged bytes or had buffer space for them. The kernel of a live peer answers probes, even
// if its program is slow.
//
// Threads: callable from anywhere. Errors: none; sockets of other protocols are not changed.
#pragma once

#include <chrono>

#include "base/time.hpp"

namespace trainyard::net {

struct DeadPeerLimits {
  std::chrono::seconds idle{30};  // so rare that thousands of idle connections cost hardly any CPU
  std::chrono::seconds interval{10};  // six probes may be lost
  // Longer than a network needs to recover from a cut cable or a restarted switch, and longer than
  // the HTTP server's idle_limit, which ends slow readers.
  Duration dead_after = 90s;
};

// Sets the limits of a socket or, for a listening socket, of all connections that it accepts.
void end_with_dead_peer(int descriptor, const DeadPeerLimits& limits = {});

}  // namespace trainyard::net
