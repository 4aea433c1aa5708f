// TcpRelay relays TCP connections: it connects each connection to a listening socket with a target,
// and copies the bytes in both directions. With a socket that listens in a job's network namespace,
// the job can reach one service of this machine and no others.
//
// Each direction has one buffer of kRelayBufferBytes. If one side does not read, the relay stops
// reading from the other. The end of one direction is forwarded, and the other direction continues.
// With an authority, the connection to the target uses TLS 1.3: the authority must have signed the
// target's certificate, which must name the target's host.
// Connections beyond kRelayConnectionsMax wait until one ends.
//
// Threads: it has one thread. Lifetime: the destructor closes all connections and joins the thread.
// Errors: invalid (target, authority). If the target cannot be reached, or its certificate is
// rejected, the connection to the relay is closed.
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

// Starts a relay. `target` is "HOST:PORT"; a name is resolved for each connection. `authority`:
// PEM;
// "": without TLS.
Result<std::unique_ptr<TcpRelay>> relay_tcp(os::File listener, const std::string& target,
                                            const std::string& authority = "");

}  // namespace trainyard::networks
