// Passes TCP connections on: whoever connects to a listening socket is connected to a target, byte by byte,
// both ways. With a socket that listens inside a job's network namespace, the job reaches a service of this
// machine and nothing else of it.
//
// Each direction has one buffer of kRelayBufferBytes; a side that does not read stops the other from being
// read. The end of one direction is passed on, the other goes on. Beyond kRelayConnectionsMax who comes waits
// until one ends.
//
// Threads: one of its own. Lifetime: destruction closes all connections and joins.
// Errors: invalid (target). A target that cannot be reached shows to the one who connected as a closed
// connection.
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

// `target` is "HOST:PORT"; names are looked up for each connection.
Result<std::unique_ptr<TcpRelay>> relay_tcp(os::File listener, const std::string& target);

}  // namespace trainyard::networks
