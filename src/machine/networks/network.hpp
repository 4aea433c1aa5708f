// Makes private networks on this machine: a bridge, and behind it network namespaces with one
// address each.
//
//   namespace            this machine
//   lo   127.0.0.1, and the link-local addresses on which a relay listens
//   eth0 10.201.0.2/28 ---- tv..0002 --- bridge ty..0000 (10.201.0.1) --- masquerade --- outside
//
// A network of one host needs no bridge: its link has the bridge's address, and one firewall table
// serves all such networks (DirectFirewall). Making one takes a few requests to the kernel, and
// many are removed at once.
//
// Each network has a firewall table. Its hosts reach each other and (unless isolated) the outside
// as its rules allow (egress.hpp), with a limit of connections. They never reach this machine's own
// addresses, another private network or the link-local range (where clouds serve the machine's own
// keys); connections from outside are refused. A bind mount on a file keeps a namespace, so it
// outlives its maker.
//
// In an ordinary user's rootless sandbox (rootless_sandbox.hpp) "this machine" is the sandbox's
// network namespace, with the sandbox's egress.
//
// All of it can be made twice and removed twice. Names start with kBridgePrefix, kLinkPrefix or
// kTablePrefix, so that a sweep finds networks without a record.
//
// Threads: callable from anywhere. Errors: denied (no right to make networks, or a tool is missing;
// the message says which), conflict (a name is in use by another program), exhausted, internal.
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
  std::string link;  // this machine's end: at most 15 characters
  // The file on which the namespace is kept; its folder must exist. "": none, and the namespace
  // ends with its last holder.
  std::string namespace_file;
  Address address = 0;
  Address under = 0;  // in encrypted networks: the address of the interface that is made here
};
inline constexpr std::string_view kUnderlay = "wire0";

struct PrivateNetwork {
  std::string bridge;  // at most 15 characters; "" = none: it has one host, and is not isolated
  std::string table;   // "" = no table of its own
  Subnet subnet;
  Address gateway = 0;  // the address of the bridge, or of the one link, if not isolated
  Subnet pool;          // the range of all private networks of this kind: unreachable from this one
  bool isolated = false;
  // The interface made here is kUnderlay, in the lower half of the subnet, with the gateway; a
  // tunnel (tunnel.hpp) makes eth0, with its address in the upper half.
  bool encrypted = false;
  std::vector<Address> relays;  // further addresses of every host's lo
  std::string comment;          // the network's purpose, for people who inspect the machine
  // This machine's own addresses, if a foreign egress would lead back to them. Determined when the
  // network is made.
  std::vector<Address> machine_addresses = {};
  Egress egress = {};  // unless isolated
  std::vector<PrivateHost> hosts;
  bool direct() const { return bridge.empty(); }
};

// The rules of all networks without a bridge whose links begin with `links`. Made before the first
// of these networks, and removed after the last.
struct DirectFirewall {
  std::string table;
  std::string links;  // kDirectPrefix and more
  Subnet pool;
  std::string comment;
  Egress egress = {};  // shared by all of them; connections are counted by address
};

// Returns the input of nft. Pure.
std::string firewall_text(const PrivateNetwork& network);
std::string firewall_text(const DirectFirewall& firewall);

// Makes the firewall, or replaces it. Not in a rootless sandbox.
Result<void> make_firewall(const DirectFirewall& firewall);
// True if there is a table of that name; queries the kernel, some ten microseconds.
bool has_firewall_table(const std::string& name);

// Makes a network and returns descriptors of the hosts' namespaces, in their order. On error
// nothing of it is left.
Result<std::vector<os::File>> make_network(const PrivateNetwork& network);
// Removes what exists of it. Continues after a failure, and returns the first one.
Result<void> remove_network(const PrivateNetwork& network);
// Removes several together: one firewall transaction, and one request to the kernel, which still
// waits for each port.
Result<void> remove_networks(const std::vector<PrivateNetwork>& networks);

// Replaces the hosts of a network that is there by those of `next`, which differs only in its
// hosts' namespace files: bridge, addresses and firewall stay. Returns what make_network() does.
// After an error some of either hosts may be there: remove_network() of both removes everything.
// Requires: the network has a bridge.
Result<std::vector<os::File>> replace_hosts(const PrivateNetwork& former,
                                            const PrivateNetwork& next);

// Lets the bridges' packets pass other programs' firewalls: a packet that one of their chains drops
// is lost, even if ours accepts it. If iptables' FORWARD drops by default (as Docker sets it up),
// adds two rules at its end, once, which accept packets from and to our bridges unless an earlier
// rule refuses them; our own tables filter these. Returns false if no rule was needed. Errors:
// denied for ufw's policy, which is kept; the message says how to allow jobs.
Result<bool> let_through_foreign_forwarding();
// Removes these rules. Harmless when they are absent.
Result<void> stop_foreign_forwarding();

// Returns the IPv4 networks of all interfaces of this machine, and of the bridges' namespace.
Result<std::vector<Subnet>> networks_in_use();
// Return the names of this machine's interfaces, and of its firewall tables, that start with
// `prefix`.
std::vector<std::string> links_named(std::string_view prefix);
Result<std::vector<std::string>> firewall_tables_named(std::string_view prefix);
Result<void> remove_links(const std::vector<std::string>& names);
Result<void> remove_firewall_tables(const std::vector<std::string>& names);
Result<void> remove_namespace_file(const std::string& path);

}  // namespace trainyard::networks
