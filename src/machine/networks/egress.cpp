#include "networks/egress.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::networks {
namespace {

constexpr uint16_t kDomainPort = 53, kHttpPort = 80, kHttpsPort = 443;

// Ranges that are not on the internet (RFC 6890): private, shared by carriers, loopback, multicast,
// reserved.
constexpr std::string_view kNotTheInternet[] = {
    "0.0.0.0/8",    "10.0.0.0/8",     "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12",
    "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"};

std::string listed(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address address : addresses) text += (text.empty() ? "" : ", ") + to_text(address);
  return text;
}

}  // namespace

const std::vector<Address>& metadata_addresses() {
  static const std::vector<Address> addresses = {*parse_address("168.63.129.16"),
                                                 *parse_address("100.100.100.200")};
  return addresses;
}

std::vector<EgressRule> rules_in_order(const Egress& egress) {
  std::vector<EgressRule> rules = egress.rules;
  for (const auto& network : egress.own_networks) rules.push_back({network, false});
  for (const auto range : kNotTheInternet) rules.push_back({*parse_subnet(range), false});
  std::stable_sort(rules.begin(), rules.end(), [](const EgressRule& a, const EgressRule& b) {
    return a.subnet.prefix > b.subnet.prefix;
  });
  // A rule after another rule of the same network is never evaluated.
  std::vector<EgressRule> requested;
  for (const auto& rule : rules)
    if (std::none_of(requested.begin(), requested.end(),
                     [&](const auto& one) { return one.subnet == rule.subnet; }))
      requested.push_back(rule);
  return requested;
}

std::string egress_text(const Egress& egress, const std::string& per_source) {
  std::string text = "    ip daddr { " + listed(metadata_addresses()) + " } drop\n";
  text += "    ct state established,related accept\n";
  const std::string over = "ct count over " + std::to_string(egress.connections_max);
  text += per_source.empty()
              ? "    ct state new " + over + " drop\n"
              : "    ct state new add @" + per_source + " { ip saddr " + over + " } drop\n";
  for (const auto& service : egress.services) {
    const std::string to = "    ip daddr " + to_text(service.address);
    const std::string port = " dport " + std::to_string(service.port) + " accept\n";
    if (service.port == kDomainPort) text += to + " udp" + port;
    text += to + " tcp" + port;
  }
  for (const auto& rule : rules_in_order(egress))
    text += "    ip daddr " + rule.subnet.text() + (rule.allowed ? " accept\n" : " drop\n");
  return text + "    accept\n";
}

Result<Subnet> parse_subnet_or_address(std::string_view text) {
  if (text == "0.0.0.0/0") return Subnet{0, 0};
  if (text.find('/') != std::string_view::npos) return parse_subnet(text);
  return Subnet{TRY(parse_address(text)), 32};
}

std::optional<EgressService> service_of_url(std::string_view url) {
  uint16_t port = kHttpPort;
  if (url.starts_with("https://")) port = kHttpsPort;
  if (const size_t scheme = url.find("://"); scheme != std::string_view::npos)
    url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find('/'));
  if (const size_t user = url.rfind('@'); user != std::string_view::npos)
    url.remove_prefix(user + 1);
  if (const size_t colon = url.find(':'); colon != std::string_view::npos) {
    const auto number = parse_int(url.substr(colon + 1));
    if (!number || *number < 1 || *number > UINT16_MAX) return {};
    port = uint16_t(*number);
    url = url.substr(0, colon);
  }
  const auto address = parse_address(url);
  if (!address) return {};
  return EgressService{*address, port};
}

std::vector<EgressService> name_servers_of(std::string_view resolv_conf) {
  std::vector<EgressService> servers;
  for (const auto line : split(resolv_conf, '\n')) {
    const auto words = trim(line);
    if (!words.starts_with("nameserver")) continue;
    const auto address = parse_address(trim(words.substr(std::string_view("nameserver").size())));
    if (address && *address >> 24 != 127) servers.push_back({*address, kDomainPort});
  }
  return servers;
}

}  // namespace trainyard::networks
