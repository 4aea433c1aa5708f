#include "collectives/transport/tcp/sockets.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "collectives/group.hpp"

namespace trainyard::collectives {

void set_link_options(int descriptor) {
  const auto set = [descriptor](int level, int name, int value) {
    (void)::setsockopt(descriptor, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);  // the last small frame of a step must not be delayed
  // Probes after 5 idle seconds, every 3 s, five times: kDeadPeerMax together.
  static_assert(TcpOptions::kDeadPeerMax == 20s);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, int(TcpOptions::kDeadPeerMax.count()));
}

}  // namespace trainyard::collectives
