// Makes private networks on this machine. A network is a bridge with a network namespace for each
// host, which has one address.
//
//   namespace            this machine
//   lo   127.0.0.1, and the link-local addresses on which a relay listens
//   eth0 10.201.0.2/28 ---- tv..0002 --- bridge ty..0000 (10.201.0.1) --- masquerade --- outside
//
// A network of one host needs no bridge: its link has the bridge's address, and all such networks
// share one firewall table (DirectFirewall). Making such a network takes a few requests to the
// kernel, and many can be removed at once.
//
// Other networks have their own firewall table. Hosts can reach each other and, unless the network
// is isolated, outside addresses that its rules allow (egress.hpp), with a limit of connections.
// They can never reach the addresses of this machine, other private networks or the link-local
// range (where clouds provide the machine's keys). Connections from outside are denied. A bind
// mount on a file keeps a namespace, so it outlives the process that made it.
//
// In an ordinary user's rootless sandbox (rootless_sandbox.hpp) "this machine" is the network
// namespace of the sandbox, with the egress of the sandbox.
//
// Making or removing a network twice is not an error. Names start with kBridgePrefix, kLinkPrefix
// or kTablePrefix, so that a sweep finds networks without a record.
//
// Threads: callable from anywhere. Errors: denied (no right to make networks, or a tool is missing;
// the message names it), conflict (another program uses a name), exhausted, internal.
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
inline constexpr std::string_view kDirectPrefix = "tys";  // for links of networks without a bridge
inline constexpr std::string_view kLinkPrefix = "tv";
inline constexpr std::string_view kTablePrefix = "trainyard_";

struct PrivateHost {
  std::string link;  // name of this machine's end: at most 15 characters
  // The file on which the namespace is mounted; its directory must exist. "": none, and the
  // namespace ends when the last descriptor of it is closed.
  std::string namespace_file;
  Address address = 0;
  Address under = 0;  // in encrypted networks: the address of the interface that is made here
};
inline constexpr std::string_view kUnderlay = "wire0";

struct PrivateNetwork {
  std::string bridge;  // at most 15 characters; "": none; it has one host, and is not isolated
  std::string table;   // "": it has no table of its own
  Subnet subnet;
  Address gateway = 0;  // address of the bridge or of the only link, if it is not isolated
  Subnet pool;          // the range of all such networks, which this one cannot reach
  bool isolated = false;
  // true: the interface that is made here is kUnderlay, in the lower half of the subnet, with the
  // gateway; a tunnel (tunnel.hpp) makes eth0, with its address in the upper half.
  bool encrypted = false;
  std::vector<Address> relays;  // additional addresses of the lo of each host
  std::string comment;          // the network's purpose, for people who inspect the machine
  // The addresses of this machine, if the egress of another program (slirp4netns) would lead to
  // them. Set when the network is made.
  std::vector<Address> machine_addresses = {};
  Egress egress = {};  // unused if isolated
  std::vector<PrivateHost> hosts;
  bool direct() const { return bridge.empty(); }
};

// The firewall of all networks without a bridge whose links start with `links`. It must be made
// before the first of these networks, and removed after the last.
struct DirectFirewall {
  std::string table;
  std::string links;  // kDirectPrefix and a suffix
  Subnet pool;
  std::string comment;
  Egress egress = {};  // shared by all of them; connections are counted by address
};

// Returns the input of nft. Pure.
std::string firewall_text(const PrivateNetwork& network);
std::string firewall_text(const DirectFirewall& firewall);

// Makes or replaces the firewall. Requires: not in a rootless sandbox.
Result<void> make_firewall(const DirectFirewall& firewall);
// Returns true if there is a table with this name. Queries the kernel, which takes about ten
// microseconds.
bool has_firewall_table(const std::string& name);

// Makes a network and returns descriptors of the hosts' namespaces, in their order. On error
// removes what it has made.
Result<std::vector<os::File>> make_network(const PrivateNetwork& network);
// Removes what exists of a network. Continues after a failure, and returns the first error.
Result<void> remove_network(const PrivateNetwork& network);
// Removes several networks together, by one firewall transaction and one request to the kernel,
// which waits for each port.
Result<void> remove_networks(const std::vector<PrivateNetwork>& networks);

// Replaces the hosts of the existing network `former` by those of `next`, which differs only in the
// namespace files of its hosts; bridge, addresses and firewall are kept. Returns the same as
// make_network(). After an error hosts of both may exist: remove_network() of both removes
// everything. Requires: the network has a bridge.
Result<std::vector<os::File>> replace_hosts(const PrivateNetwork& former,
                                            const PrivateNetwork& next);

// Makes firewalls of other programs accept the packets of the bridges: a packet that one of their
// chains drops is lost, even if Trainyard's table accepts it. If the policy of iptables' FORWARD is
// drop (as Docker sets it), appends two rules once, which accept packets from and to the bridges
// unless an earlier rule denies them; Trainyard's tables filter these. Returns false if no rule was
// needed. Errors: denied, for the policy of ufw, which is not changed; the message has the remedy.
Result<bool> let_through_foreign_forwarding();
// Removes these rules. Does nothing if they are absent.
Result<void> stop_foreign_forwarding();

// Returns the IPv4 networks of all interfaces of this machine, and of the bridges' namespace.
Result<std::vector<Subnet>> networks_in_use();
// Return the names of this machine's interfaces and of its firewall tables that start with
// `prefix`.
std::vector<std::string> links_named(std::string_view prefix);
Result<std::vector<std::string>> firewall_tables_named(std::string_view prefix);
Result<void> remove_links(const std::vector<std::string>& names);
Result<void> remove_firewall_tables(const std::vector<std::string>& names);
Result<void> remove_namespace_file(const std::string& path);

}  // namespace trainyard::networks
