// Opens an encrypted network between the hosts of a gang. All traffic between them is sent in
// datagrams that only members can read or make (WireGuard's protocol: Noise IK, ChaCha20-Poly1305,
// new keys every two minutes).
//
//   namespace
//   eth0   10.201.0.10/29   the tunnel, with the address that programs see; made here
//   wire0  10.201.0.2/29    transfers its datagrams, and has the egress; made with the network
//                           (network.hpp, `encrypted`)
//
// Hosts on nodes without a common private network have endpoints on these nodes instead, to which a
// relay transfers the datagrams (datagram_relay.hpp).
//
// Between hosts wire0 transfers only datagrams of the tunnel, so no traffic can bypass it. The keys
// of members are derived from the gang's secret, which all members have, so they need not be
// exchanged.
//
// A process in the namespace, wireguard-go, implements the tunnel; it ends with the Tunnel. If its
// starter was killed, it is found by its environment (find_marked() of process_identity.hpp), like
// all programs that an agent starts.
//
// Threads: confined to one. Errors: denied (wireguard-go or /dev/net/tun is missing; the message
// names it), unavailable (wireguard-go does not answer), internal.
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
  std::string secret;  // random secret of the gang
  std::vector<TunnelMember> members;
  size_t own = 0;                       // index of this member
  Address gateway = 0;                  // gateway of the egress, whose traffic is not encrypted
  int prefix = 32;                      // prefix of the networks of wire0 and eth0
  std::vector<NodeEndpoint> endpoints;  // of all members; empty: they are connected by wire0
  std::string log_file;
};

class Tunnel {
 public:
  virtual ~Tunnel() = default;  // closes it
};

// Opens a tunnel. Ensures: eth0 exists and is up.
Result<std::unique_ptr<Tunnel>> open_tunnel(const TunnelSpec& spec);

// Returns "" if this machine supports tunnels; otherwise the reason and the remedy.
std::string why_no_tunnel();

// WireGuard's usual port; programs of the job cannot use it
inline constexpr uint16_t kTunnelPort = 51820;

// The keys of a member, exposed for tests. X25519 keys have 32 bytes.
struct TunnelKeys {
  std::string own;                   // private
  std::vector<std::string> publics;  // the public keys of all members
};
Result<TunnelKeys> tunnel_keys(const std::string& secret, size_t members, size_t own);
// Returns the configuration of the member and its peers, in WireGuard's configuration protocol.
std::string tunnel_configuration(const TunnelSpec& spec, const TunnelKeys& keys);
// Returns the input of nft for the namespace.
std::string tunnel_firewall(const TunnelSpec& spec);

}  // namespace trainyard::networks
