// Relays TCP connections: each connection to a listening socket is connected to a target, byte by
// byte, in both directions. With a socket that listens in a job's network namespace, the job
// reaches one service of this machine and nothing else of it.
//
// Each direction has one buffer of kRelayBufferBytes; a side that does not read stops reads from
// the other. The end of one direction is forwarded, the other continues. Connections beyond
// kRelayConnectionsMax wait until one ends.
//
// Threads: one of its own. Lifetime: destruction closes all connections and joins.
// Errors: invalid (target). If the target cannot be reached, the connection to the relay is
// closed.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::networks {

inline constexpr size_t kRelayBufferBytes = 64 << 10;
inline constexpr size_t kRelayConnectionsMax = 512;  // 64 MiB of buffers at most

class TcpRelay {
 public:
  virtual ~TcpRelay() = default;
};

// `target` is "HOST:PORT"; names are resolved for each connection.
Result<std::unique_ptr<TcpRelay>> relay_tcp(os::File listener, const std::string& target);

}  // namespace trainyard::networks
