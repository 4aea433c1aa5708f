#include "net/dead_peer.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace trainyard::net {

void end_with_dead_peer(int descriptor, const DeadPeerLimits& limits) {
  const auto set = [&](int level, int option, int64_t value) {
    const int number = int(value);
    (void)::setsockopt(descriptor, level, option, &number, sizeof number);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, limits.idle.count());
  set(IPPROTO_TCP, TCP_KEEPINTVL, limits.interval.count());
  // With this option Linux ends the connection after this time, and not after a number of probes.
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, limits.dead_after.count());
}

}  // namespace trainyard::net
