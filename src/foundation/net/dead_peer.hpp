// Ends TCP connections whose peer has vanished: its machine lost power, or a network or firewall in
// between drops all packets (a half-open connection). Without this an idle connection stays
// forever, and one with unacknowledged bytes a quarter of an hour.
//
// The kernel probes an idle connection after `idle` and then every `interval`; the connection ends
// with ETIMEDOUT when `dead_after` has passed since the peer's last packet, or since it last
// acknowledged bytes or had buffer space for them. The kernel of a live peer answers, however slow
// its program is.
//
// Threads: callable from anywhere. Errors: none: sockets of other protocols are left unchanged.
#pragma once

#include <chrono>

#include "base/time.hpp"

namespace trainyard::net {

struct DeadPeerLimits {
  std::chrono::seconds idle{30};      // rare enough that thousands of idle connections cost nothing
  std::chrono::seconds interval{10};  // six probes may be lost
  // Longer than a network takes to recover from a cut cable or a restarted switch, and than the
  // HTTP server's idle_limit, so that a slow reader is judged there.
  Duration dead_after = 90s;
};

// Applies to a socket; for a listening one, to all connections that it accepts.
void end_with_dead_peer(int descriptor, const DeadPeerLimits& limits = {});

}  // namespace trainyard::net
