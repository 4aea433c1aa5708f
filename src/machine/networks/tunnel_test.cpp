#include "networks/tunnel.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace trainyard::networks {
namespace {

TunnelSpec a_spec() {
  TunnelSpec spec;
  spec.secret = "of the gang";
  spec.members = {{0x0ac9000a, 0x0ac90002}, {0x0ac9000b, 0x0ac90003}, {0x0ac9000c, 0x0ac90004}};
  spec.own = 1;
  spec.gateway = 0x0ac90001;
  spec.prefix = 29;
  return spec;
}

TEST(Tunnel, MembersDeriveTheSameKeys) {
  const auto first = tunnel_keys("secret", 3, 0), second = tunnel_keys("secret", 3, 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->publics, second->publics);
  EXPECT_NE(first->own, second->own);
  EXPECT_NE(first->publics[0], first->publics[1]);
  EXPECT_EQ(first->own.size(), 32u);
  EXPECT_NE(tunnel_keys("another", 3, 0)->publics, first->publics);
}

TEST(Tunnel, ConfiguresAllPeersExceptItself) {
  const TunnelSpec spec = a_spec();
  const auto keys = tunnel_keys(spec.secret, 3, spec.own);
  ASSERT_TRUE(keys);
  const std::string text = tunnel_configuration(spec, *keys);
  EXPECT_TRUE(text.starts_with("set=1\nprivate_key=" + to_hex(keys->own) + "\nlisten_port=51820\n"))
      << text;
  EXPECT_TRUE(text.ends_with("\n\n"));
  EXPECT_NE(text.find("public_key=" + to_hex(keys->publics[0]) + "\nendpoint=10.201.0.2:51820\n"),
            text.npos)
      << text;
  EXPECT_NE(text.find("allowed_ip=10.201.0.12/32\n"), text.npos) << text;
  EXPECT_EQ(text.find("allowed_ip=10.201.0.11/32\n"), text.npos) << text;
}

TEST(Tunnel, SendsToTheRelayIfMembersHaveEndpoints) {
  TunnelSpec spec = a_spec();
  spec.endpoints = {{1, 20000}, {1, 20001}, {2, 20002}};
  const std::string text = tunnel_configuration(spec, *tunnel_keys(spec.secret, 3, spec.own));
  EXPECT_NE(text.find("endpoint=127.77.0.0:51821\n"), text.npos) << text;
  EXPECT_NE(text.find("endpoint=127.77.0.2:51821\n"), text.npos) << text;
  EXPECT_EQ(text.find("10.201.0.2"), text.npos) << text;
}

TEST(Tunnel, LetsNoTrafficBypassIt) {
  const std::string text = tunnel_firewall(a_spec());
  EXPECT_NE(text.find("oifname != \"wire0\" accept\n    ip daddr 10.201.0.1 accept\n"
                      "    ip daddr 10.201.0.0/29 udp sport 51820 udp dport 51820 accept\n"
                      "    ip daddr { 10.201.0.0/29, 224.0.0.0/4, 255.255.255.255 } drop\n"),
            text.npos)
      << text;
  EXPECT_NE(text.find("iifname != \"wire0\" accept\n    ip saddr 10.201.0.1 accept\n"), text.npos)
      << text;
}

}  // namespace
}  // namespace trainyard::networks
