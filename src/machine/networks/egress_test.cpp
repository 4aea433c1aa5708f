#include "networks/egress.hpp"

#include <gtest/gtest.h>

namespace trainyard::networks {
namespace {

EgressRule allow(const char* text) { return {*parse_subnet_or_address(text), true}; }
EgressRule deny(const char* text) { return {*parse_subnet_or_address(text), false}; }

// Evaluates the rules for a new connection, as the firewall does.
bool reaches(const Egress& egress, const char* text) {
  const Address address = *parse_address(text);
  for (const auto& rule : rules_in_order(egress))
    if (rule.subnet.contains(address)) return rule.allowed;
  return true;
}

TEST(Egress, AllowsTheInternetAndDeniesPrivateRanges) {
  for (const char* open : {"1.1.1.1", "52.95.110.1", "172.15.0.1", "172.32.0.1", "192.0.2.2"})
    EXPECT_TRUE(reaches({}, open)) << open;
  for (const char* closed :
       {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "127.0.0.1",
        "0.0.0.0", "224.0.0.1", "255.255.255.255", "198.18.0.1"})
    EXPECT_FALSE(reaches({}, closed)) << closed;
}

TEST(Egress, DeniesTheNetworksOfTheMachine) {
  Egress egress;
  egress.own_networks = {*parse_subnet("203.0.113.0/24")};
  EXPECT_FALSE(reaches(egress, "203.0.113.9"));
  EXPECT_TRUE(reaches(egress, "203.0.114.9"));
  egress.rules = {allow("203.0.113.0/24")};
  EXPECT_TRUE(reaches(egress, "203.0.113.9")) << "a rule of the config";
}

TEST(Egress, AppliesTheMostSpecificRule) {
  Egress egress;
  egress.rules = {allow("10.20.0.0/16"), deny("10.20.3.0/24"), deny("0.0.0.0/0"),
                  allow("52.0.0.0/8")};
  EXPECT_TRUE(reaches(egress, "10.20.1.1"));
  EXPECT_FALSE(reaches(egress, "10.20.3.1"));
  EXPECT_FALSE(reaches(egress, "10.21.0.1"));
  EXPECT_TRUE(reaches(egress, "52.1.1.1"));
  EXPECT_FALSE(reaches(egress, "1.1.1.1"));
  egress.rules = {deny("10.20.0.0/16"), allow("10.20.0.0/16")};
  EXPECT_FALSE(reaches(egress, "10.20.1.1")) << "the first of equal rules counts";
}

TEST(Egress, DeniesMetadataAndCountsConnectionsBeforeOtherRules) {
  Egress egress;
  egress.rules = {allow("168.63.129.16"), allow("0.0.0.0/0")};
  egress.services = {{*parse_address("10.0.0.2"), 53}, {*parse_address("10.0.0.3"), 3128}};
  egress.connections_max = 10;
  const std::string text = egress_text(egress, "");
  const auto at = [&](const char* line) { return text.find(line); };
  ASSERT_NE(at("ip daddr { 168.63.129.16, 100.100.100.200 } drop"), std::string::npos) << text;
  EXPECT_LT(at("ip daddr { 168.63.129.16"), at("ip daddr 168.63.129.16/32 accept"));
  EXPECT_LT(at("ct state new ct count over 10 drop"), at("ip daddr 10.0.0.2 udp dport 53 accept"));
  EXPECT_LT(at("ip daddr 10.0.0.3 tcp dport 3128 accept"), at("ip daddr 10.0.0.0/8 drop"));
  EXPECT_EQ(at("ip daddr 10.0.0.3 udp"), std::string::npos);
  EXPECT_NE(
      egress_text(egress, "each").find("ct state new add @each { ip saddr ct count over 10 } drop"),
      std::string::npos);
}

TEST(Egress, ReadsServicesFromUrlsAndResolvConf) {
  const auto parsed = [](const char* url) {
    const auto service = service_of_url(url);
    return service ? to_text(service->address) + " " + std::to_string(service->port) : "none";
  };
  EXPECT_EQ(parsed("http://10.0.0.3:3128"), "10.0.0.3 3128");
  EXPECT_EQ(parsed("http://me:secret@10.0.0.3:3128/"), "10.0.0.3 3128");
  EXPECT_EQ(parsed("https://10.0.0.3/simple"), "10.0.0.3 443");
  EXPECT_EQ(parsed("http://10.0.0.3/"), "10.0.0.3 80");
  for (const char* none : {"", "https://proxy.lan:3128", "http://10.0.0.3:0",
                           "http://10.0.0.3:65536", "http://[::1]:80"})
    EXPECT_EQ(parsed(none), "none") << none;
  const auto servers = name_servers_of(
      "# nameserver 1.2.3.4\nsearch lan\nnameserver 10.0.0.2 \nnameserver 127.0.0.53\n"
      "nameserver fe80::1\n");
  ASSERT_EQ(servers.size(), 1u);
  EXPECT_EQ(to_text(servers[0].address), "10.0.0.2");
  EXPECT_EQ(servers[0].port, 53);
}

}  // namespace
}  // namespace trainyard::networks
