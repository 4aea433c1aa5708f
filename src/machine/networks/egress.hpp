// Decides what of the outside the hosts of a private network (network.hpp) may reach, as rules of the firewall.
//
// An address is judged by the most specific network that names it; of two equal ones by the first in the list. What no
// rule names is the internet, and is reached. Private and reserved ranges and the machine's own networks are refused by
// rules that stand behind all others, so a rule of the config that is as specific lets them be reached. Addresses at
// which clouds serve a machine's own keys are refused whatever the rules say, and all of IPv6.
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

// A service that the config gives to all jobs: reached whatever the rules say of its address.
struct EgressService {
  Address address = 0;
  uint16_t port = 0;  // TCP, and UDP for name servers
  bool operator==(const EgressService&) const = default;
};

// Of one job at once. The machine's table of connections (nf_conntrack_max, 65,536 and more) is everybody's; loaders
// of data open some hundred.
inline constexpr uint32_t kConnectionsMax = 4096;

struct Egress {
  std::vector<EgressRule> rules;
  std::vector<EgressService> services;
  std::vector<Subnet> own_networks;  // that this machine's interfaces are in
  uint32_t connections_max = kConnectionsMax;
  bool operator==(const Egress&) const = default;
};

// 168.63.129.16 (Azure), 100.100.100.200 (Alibaba); the link-local range, with 169.254.169.254, is refused as well.
const std::vector<Address>& metadata_addresses();

// Every rule, the given and the built-in ones, in the order in which they are asked.
std::vector<EgressRule> rules_in_order(const Egress& egress);

// Lines of nft's language for a chain of what is forwarded, to stand behind what refuses the pool and the link-local range;
// the last one accepts. `per_source`: the name of a dynamic set, where many jobs share the chain and each is counted by
// its address; "": all connections of the chain are one job's.
std::string egress_text(const Egress& egress, const std::string& per_source);

// "10.0.0.0/8", or one address.
Result<Subnet> parse_subnet_or_address(std::string_view text);
// Of a URL or HOST[:PORT]: nothing where the host is a name, which cannot be judged by its address.
std::optional<EgressService> service_of_url(std::string_view url);
// Of the text of a resolv.conf: its name servers that are not of the machine's own loopback.
std::vector<EgressService> name_servers_of(std::string_view resolv_conf);

}  // namespace trainyard::networks
