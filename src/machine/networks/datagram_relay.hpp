// Relays the datagrams of an encrypted network (tunnel.hpp) between nodes that have no common
// private network: an ordinary user cannot make one between machines, but can use UDP.
//
//   node n1                                             node n2
//   namespace of host 0                                 namespace of host 1
//     tunnel, port 51820                                  tunnel, port 51820
//       │                                                   │
//     127.77.0.1:51821  ── 10.0.0.1:20000 ═══ 10.0.0.2:20001 ── 127.77.0.0:51821
//
// In a host's namespace each peer has a loopback address. The relay receives at it what the tunnel
// sends to the peer, and sends from it what the peer sends to the tunnel. Outside, each host has
// its own port on its node. The relay drops datagrams from other addresses. The tunnel drops
// datagrams that other processes on a peer's node send, because they are not signed with the key of
// a member.
//
// Threads: it has one thread. Lifetime: the destructor closes the sockets and joins the thread.
// Errors: conflict (the port of the node is in use), denied, not_found (the namespace).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "networks/subnet.hpp"

namespace trainyard::networks {

// The port on a host's node to which the other hosts send their datagrams.
struct NodeEndpoint {
  Address node = 0;
  uint16_t port = 0;
  bool operator==(const NodeEndpoint&) const = default;
};

// Returns the loopback address of the peer with this index in the gang, in the namespaces of other
// hosts. Pure.
Address loopback_of_peer(size_t index);
inline constexpr uint16_t kPeerPort = 51821;

struct DatagramRelaySpec {
  std::string network_namespace;        // namespace of the host; "": the current one
  std::vector<NodeEndpoint> endpoints;  // endpoints of all hosts, by index
  size_t own = 0;                       // index of this host
  uint16_t tunnel_port = 0;             // port of the tunnel in the namespace
  uint16_t peer_port = kPeerPort;
};

class DatagramRelay {
 public:
  virtual ~DatagramRelay() = default;
};

Result<std::unique_ptr<DatagramRelay>> relay_datagrams(const DatagramRelaySpec& spec);

// Parses "10.0.0.1:20000,10.0.0.2:20001". Pure. Errors: invalid.
Result<std::vector<NodeEndpoint>> parse_endpoints(std::string_view text);

}  // namespace trainyard::networks
