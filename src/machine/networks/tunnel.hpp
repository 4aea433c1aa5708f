// An encrypted network between the hosts of a gang: whatever programs send each other, the wire carries datagrams that
// only members can read or make (WireGuard's protocol: Noise IK, ChaCha20-Poly1305, fresh keys every two minutes).
//
//   namespace
//   eth0   10.201.0.10/29   what programs see: the tunnel, made here
//   wire0  10.201.0.2/29    what carries it, and the way out; the network made it (network.hpp, `encrypted`)
//
// Between hosts wire0 lets nothing through but the tunnel's own datagrams, so nobody passes by it. A member's keys are
// drawn from the gang's secret, which all members have: nothing is exchanged beforehand.
//
// The work is wireguard-go's, a process in the namespace that ends with the Tunnel; one that a killed maker left is
// found by its environment (process_identity.hpp: find_marked), as all that an agent starts.
//
// Threads: confined to one. Errors: denied (wireguard-go or /dev/net/tun is not to be had, in words), unavailable (it
// does not answer), internal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "networks/network.hpp"

namespace trainyard::networks {

struct TunnelMember {
  Address address = 0;  // that programs know
  Address under = 0;    // of its wire0
};

struct TunnelSpec {
  std::string network_namespace;
  std::string secret;  // of the gang; cannot be guessed
  std::vector<TunnelMember> members;
  size_t own = 0;       // which of them this is
  Address gateway = 0;  // of the way out: it carries what goes outside as it is
  int prefix = 32;      // of the network of wire0, and of that of eth0
  std::string log_file;
};

class Tunnel {
 public:
  virtual ~Tunnel() = default;  // closes it
};

// When this returns, eth0 is there and up.
Result<std::unique_ptr<Tunnel>> open_tunnel(const TunnelSpec& spec);

// "" when this machine can; else why not, and what to do, in words.
std::string why_no_tunnel();

inline constexpr uint16_t kTunnelPort = 51820;  // WireGuard's usual one; programs of the job cannot have it

// Pure, for tests. Keys are X25519's, 32 bytes each.
struct TunnelKeys {
  std::string own;                   // private
  std::vector<std::string> publics;  // of all members
};
Result<TunnelKeys> tunnel_keys(const std::string& secret, size_t members, size_t own);
// What WireGuard is told about itself and its peers, as its configuration protocol has it.
std::string tunnel_configuration(const TunnelSpec& spec, const TunnelKeys& keys);
// What nft is told, inside the namespace.
std::string tunnel_firewall(const TunnelSpec& spec);

}  // namespace trainyard::networks
