// Carries the datagrams of an encrypted network (tunnel.hpp) between nodes that no network of ours
// joins: an ordinary user can make none between machines, but can use UDP.
//
//   node n1                                             node n2
//   namespace of host 0                                 namespace of host 1
//     tunnel, port 51820                                  tunnel, port 51820
//       │                                                   │
//     127.77.0.1:51821  ── 10.0.0.1:20000 ═══ 10.0.0.2:20001 ── 127.77.0.0:51821
//
// In a host's namespace each peer has an address of the loopback network, at which the relay takes
// what the tunnel sends to that peer, and from which it gives what the peer sends. Outside, each
// host has a port of its own on its node. Datagrams from other addresses are dropped; what another
// process of a peer's node sends under that node's address is dropped by the tunnel, since it is
// not signed with a member's key.
//
// Threads: one of its own. Lifetime: destruction closes the sockets and joins. Errors: conflict
// (the port of the node is in use), denied, not_found (the namespace).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "networks/subnet.hpp"

namespace trainyard::networks {

// Names the port of a host's node to which the other hosts send their datagrams.
struct NodeEndpoint {
  Address node = 0;
  uint16_t port = 0;
  bool operator==(const NodeEndpoint&) const = default;
};

// The address that the peer with this index in the gang has in the namespaces of the others. Pure.
Address loopback_of_peer(size_t index);
inline constexpr uint16_t kPeerPort = 51821;

struct DatagramRelaySpec {
  std::string network_namespace;        // of the host; "": the current one
  std::vector<NodeEndpoint> endpoints;  // of all hosts, by index
  size_t own = 0;                       // the index of this host
  uint16_t tunnel_port = 0;             // of the tunnel in the namespace
  uint16_t peer_port = kPeerPort;
};

class DatagramRelay {
 public:
  virtual ~DatagramRelay() = default;
};

Result<std::unique_ptr<DatagramRelay>> relay_datagrams(const DatagramRelaySpec& spec);

// Reads "10.0.0.1:20000,10.0.0.2:20001". Pure. Errors: invalid.
Result<std::vector<NodeEndpoint>> parse_endpoints(std::string_view text);

}  // namespace trainyard::networks
