// Decides which outside addresses the hosts of a private network (network.hpp) may reach, as rules
// of the firewall.
//
// The most specific rule for an address applies; of equally specific rules the first in the list.
// An address without a rule is on the internet and is allowed. Private and reserved ranges and the
// networks of the machine are denied by rules after all others, so an equally specific rule of the
// config can allow them. Addresses at which clouds provide a machine's keys, and all of IPv6, are
// always denied.
//
// Threads: pure functions. Errors: invalid (text of the config).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "networks/subnet.hpp"

namespace trainyard::networks {

struct EgressRule {
  Subnet subnet;
  bool allowed = false;
  bool operator==(const EgressRule&) const = default;
};

// A service that the config provides to all jobs. It is allowed regardless of the rules for its
// address.
struct EgressService {
  Address address = 0;
  uint16_t port = 0;  // TCP, and UDP for name servers
  bool operator==(const EgressService&) const = default;
};

// limit of connections of one job; all jobs share the machine's connection table (nf_conntrack_max,
// 65,536 or more), and data loaders open a few hundred
inline constexpr uint32_t kConnectionsMax = 4096;

struct Egress {
  std::vector<EgressRule> rules;
  std::vector<EgressService> services;
  std::vector<Subnet> own_networks;  // networks of this machine's interfaces
  uint32_t connections_max = kConnectionsMax;
  bool operator==(const Egress&) const = default;
};

// Returns the addresses at which clouds provide keys: 168.63.129.16 (Azure), 100.100.100.200
// (Alibaba). The link-local range, with 169.254.169.254, is denied separately.
const std::vector<Address>& metadata_addresses();

// Returns all rules, including the built-in ones, in the order of their evaluation.
std::vector<EgressRule> rules_in_order(const Egress& egress);

// Returns lines in nft's language for a forward chain, to follow the rules that deny the pool and
// the link-local range; the last line accepts. `per_source` is the name of a dynamic set, if many
// jobs share the chain and connections are counted by the address of each job; "": all connections
// of the chain belong to one job.
std::string egress_text(const Egress& egress, const std::string& per_source);

// Parses "10.0.0.0/8" or a single address.
Result<Subnet> parse_subnet_or_address(std::string_view text);
// Returns the service of a URL or HOST[:PORT]; nullopt if the host is a name, whose address is
// unknown.
std::optional<EgressService> service_of_url(std::string_view url);
// Returns the name servers of a resolv.conf, without those on the machine's loopback.
std::vector<EgressService> name_servers_of(std::string_view resolv_conf);

}  // namespace trainyard::networks
