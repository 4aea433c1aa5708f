// Private networks on this machine: a bridge, and behind it network namespaces with one address each.
//
//   namespace            this machine
//   lo   127.0.0.1, and the link-local addresses on which a relay listens
//   eth0 10.201.0.2/28 ---- tv..0002 --- bridge ty..0000 (10.201.0.1) --- masquerade --- outside
//
// A network of one host needs no bridge: its link has the bridge's address, and one firewall table serves all of them
// (DirectFirewall). Making such a network takes a few requests to the kernel, and many are removed in one stroke.
//
// One firewall table a network says what may pass: its hosts reach each other and (unless isolated) the
// outside as its rules say (egress.hpp), with a limit of connections, never this machine's own addresses, another private network or the link-local range (where clouds
// serve the machine's own keys); from outside nothing gets in. A namespace is kept by a bind mount on a file,
// so it outlives its maker.
//
// In an ordinary user's enclosure "this machine" is a network namespace of its own, whose way out is the enclosure's
// (enclosure.hpp); all of this is done there.
//
// Everything can be made twice and removed twice. What exists is found by name: names start with
// kBridgePrefix, kLinkPrefix and kTablePrefix, so that a sweep finds what nobody remembers.
//
// Threads: callable from anywhere. Errors: denied (no right to make networks; a tool is missing, in words),
// conflict (a name is taken by something else), exhausted, internal.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "networks/egress.hpp"
#include "networks/subnet.hpp"
#include "os/files.hpp"

namespace trainyard::networks {

inline constexpr std::string_view kBridgePrefix = "ty";
inline constexpr std::string_view kDirectPrefix = "tys";  // of the links of networks without a bridge
inline constexpr std::string_view kLinkPrefix = "tv";
inline constexpr std::string_view kTablePrefix = "trainyard_";

struct PrivateHost {
  std::string link;  // this machine's end: at most 15 characters
  // Made here; its folder must be there. "": none, and the namespace is gone with the last who holds it.
  std::string namespace_file;
  Address address = 0;
  Address under = 0;  // of an encrypted network: of the interface that is made here
};
inline constexpr std::string_view kUnderlay = "wire0";

struct PrivateNetwork {
  std::string bridge;  // at most 15 characters; "" = none: it has one host, and is not isolated
  std::string table;   // "" = none of its own
  Subnet subnet;
  Address gateway = 0;  // the bridge's own, or the one link's, when not isolated
  Subnet pool;          // where all private networks of this kind lie: not reachable from this one
  bool isolated = false;
  // The interface made here is kUnderlay, in the lower half of the subnet, with the gateway; eth0 and its address, in
  // the upper half, come with a tunnel (tunnel.hpp).
  bool encrypted = false;
  std::vector<Address> relays;  // further addresses of every host's lo
  std::string comment;          // whose it is, for people who look at the machine
  // This machine's own, where a way out that is not its own would lead back to them. Found out when it is made.
  std::vector<Address> machine_addresses = {};
  Egress egress = {};  // unless isolated
  std::vector<PrivateHost> hosts;
  bool direct() const { return bridge.empty(); }
};

// What may pass from and to all networks without a bridge whose links begin with `links`. Stands before the first of
// them is made, and goes after the last.
struct DirectFirewall {
  std::string table;
  std::string links;  // kDirectPrefix and more
  Subnet pool;
  std::string comment;
  Egress egress = {};  // of all of them; each is counted by its address
};

// Pure: what is given to nft.
std::string firewall_text(const PrivateNetwork& network);
std::string firewall_text(const DirectFirewall& firewall);

// Making it again replaces it. Not in an enclosure.
Result<void> make_firewall(const DirectFirewall& firewall);
// Whether a table of that name is there; asks the kernel, some ten microseconds.
bool has_firewall_table(const std::string& name);

// Descriptors of the hosts' namespaces, in their order. On error nothing of it is left.
Result<std::vector<os::File>> make_network(const PrivateNetwork& network);
// Harmless when there is nothing. Goes on past what fails, and tells the first failure.
Result<void> remove_network(const PrivateNetwork& network);
// Several together: one firewall transaction, one request to the kernel, which still waits once for each port.
Result<void> remove_networks(const std::vector<PrivateNetwork>& networks);

// Other firewalls are heard too: what a chain of theirs drops is gone, whatever ours accepts. Where iptables' FORWARD
// drops by default (Docker sets that up), this lets pass what comes from or goes to our bridges and what no rule of theirs
// refuses; our own tables say what of it may. Two rules behind theirs, once; false when nothing needed them.
// Errors: denied where the policy is ufw's, which stays as it is; the message says what allows jobs.
Result<bool> let_through_foreign_forwarding();
// Takes them away again. Harmless when they are not there.
Result<void> stop_foreign_forwarding();

// Every IPv4 network that an interface of this machine, or of the bridges' namespace, is in.
Result<std::vector<Subnet>> networks_in_use();
// Names of this machine's interfaces, and of its firewall tables, that start with `prefix`.
std::vector<std::string> links_named(std::string_view prefix);
Result<std::vector<std::string>> firewall_tables_named(std::string_view prefix);
Result<void> remove_links(const std::vector<std::string>& names);
Result<void> remove_firewall_tables(const std::vector<std::string>& names);
Result<void> remove_namespace_file(const std::string& path);

}  // namespace trainyard::networks
