// Decides which outside addresses the hosts of a private network (network.hpp) may reach, as rules
// of the firewall.
//
// The most specific rule for an address decides; of two equal ones the first in the list. An
// address without a rule is on the internet, and is allowed. Private and reserved ranges and the
// machine's own networks are refused by rules behind all others, so an equally specific rule of the
// config allows them. Addresses at which clouds serve a machine's own keys are refused in spite of
// any rule, and so is all of IPv6.
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

// A service that the config gives to all jobs: allowed in spite of any rule for its address.
struct EgressService {
  Address address = 0;
  uint16_t port = 0;  // TCP, and UDP for name servers
  bool operator==(const EgressService&) const = default;
};

// Limit of one job. All jobs share the machine's connection table (nf_conntrack_max, 65,536 and
// more); data loaders open some hundred.
inline constexpr uint32_t kConnectionsMax = 4096;

struct Egress {
  std::vector<EgressRule> rules;
  std::vector<EgressService> services;
  std::vector<Subnet> own_networks;  // networks of this machine's interfaces
  uint32_t connections_max = kConnectionsMax;
  bool operator==(const Egress&) const = default;
};

// 168.63.129.16 (Azure), 100.100.100.200 (Alibaba); the link-local range, with 169.254.169.254, is
// refused as well.
const std::vector<Address>& metadata_addresses();

// Returns all rules, given and built-in, in the order of their evaluation.
std::vector<EgressRule> rules_in_order(const Egress& egress);

// Returns lines in nft's language for a forward chain, to stand behind the rules that refuse the
// pool and the link-local range; the last one accepts. `per_source`: the name of a dynamic set, if
// many jobs share the chain and the connections of each are counted by its address; "": all
// connections of the chain belong to one job.
std::string egress_text(const Egress& egress, const std::string& per_source);

// Parses "10.0.0.0/8", or one address.
Result<Subnet> parse_subnet_or_address(std::string_view text);
// Returns the service of a URL or HOST[:PORT]; nothing if the host is a name, which has no known
// address.
std::optional<EgressService> service_of_url(std::string_view url);
// Returns the name servers of a resolv.conf, without those on the machine's own loopback.
std::vector<EgressService> name_servers_of(std::string_view resolv_conf);

}  // namespace trainyard::networks
