// Ends TCP connections whose peer is gone without a word: its machine lost power, or a network or a firewall between drops all
// packets (a half-open connection). Without this a silent connection stays forever, and one with bytes under way a quarter of
// an hour.
//
// A connection that is silent is asked after `idle` and then every `interval`; it ends with ETIMEDOUT when `dead_after` has
// passed since the peer's last word, and so does one whose bytes the peer has not acknowledged, or not made room for, for
// so long. A peer that lives answers from its kernel, however slow its program is.
//
// Threads: callable from anywhere. Errors: none: of a socket that is not TCP's nothing changes.
#pragma once

#include <chrono>

#include "base/time.hpp"

namespace trainyard::net {

struct DeadPeerLimits {
  std::chrono::seconds idle{30};      // rare enough that thousands of silent connections cost nothing
  std::chrono::seconds interval{10};  // six questions may be lost
  // Longer than a network takes to heal after a cut cable or a restarted switch, and than the HTTP server's idle_limit, so
  // that whoever only reads slowly is judged there.
  Duration dead_after = 90s;
};

// Of a listening socket: of all connections that come to it.
void end_with_dead_peer(int descriptor, const DeadPeerLimits& limits = {});

}  // namespace trainyard::net
