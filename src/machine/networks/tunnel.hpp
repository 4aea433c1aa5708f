// Opens an encrypted network between the hosts of a gang: all traffic between them travels in
// datagrams that only members can read or make (WireGuard's protocol: Noise IK, ChaCha20-Poly1305,
// new keys every two minutes).
//
//   namespace
//   eth0   10.201.0.10/29   the address that programs see: the tunnel, made here
//   wire0  10.201.0.2/29    carries it, and has the egress; the network made it (network.hpp,
//                           `encrypted`)
//
// Hosts on nodes that no network of ours joins have endpoints on these nodes instead, to which a
// relay carries the datagrams (datagram_relay.hpp).
//
// Between hosts wire0 passes only the tunnel's own datagrams, so no traffic bypasses it. A member's
// keys are derived from the gang's secret, which all members have: nothing is exchanged beforehand.
//
// wireguard-go does the work, a process in the namespace that ends with the Tunnel. One that a
// killed maker left is found by its environment (process_identity.hpp: find_marked), like all
// programs that an agent starts.
//
// Threads: confined to one. Errors: denied (wireguard-go or /dev/net/tun is missing; the message
// says which), unavailable (it does not answer), internal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "networks/datagram_relay.hpp"
#include "networks/network.hpp"

namespace trainyard::networks {

struct TunnelMember {
  Address address = 0;  // the address that programs see
  Address under = 0;    // the address of its wire0
};

struct TunnelSpec {
  std::string network_namespace;
  std::string secret;  // of the gang; random
  std::vector<TunnelMember> members;
  size_t own = 0;                       // the index of this member
  Address gateway = 0;                  // of the egress: traffic to and from it is not encrypted
  int prefix = 32;                      // of the network of wire0, and of eth0's
  std::vector<NodeEndpoint> endpoints;  // of all members; empty: they reach each other by wire0
  std::string log_file;
};

class Tunnel {
 public:
  virtual ~Tunnel() = default;  // closes it
};

// On return, eth0 exists and is up.
Result<std::unique_ptr<Tunnel>> open_tunnel(const TunnelSpec& spec);

// Returns "" if this machine supports tunnels; else the reason, and how to correct it.
std::string why_no_tunnel();

// WireGuard's usual one; programs of the job cannot use it
inline constexpr uint16_t kTunnelPort = 51820;

// For tests. Keys are X25519's, 32 bytes each. Pure.
struct TunnelKeys {
  std::string own;                   // private
  std::vector<std::string> publics;  // the public keys of all members
};
Result<TunnelKeys> tunnel_keys(const std::string& secret, size_t members, size_t own);
// Returns the configuration of the member and its peers, in WireGuard's configuration protocol.
std::string tunnel_configuration(const TunnelSpec& spec, const TunnelKeys& keys);
// Returns the input of nft, in the namespace.
std::string tunnel_firewall(const TunnelSpec& spec);

}  // namespace trainyard::networks
