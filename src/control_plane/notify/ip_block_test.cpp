#include "notify/ip_block.hpp"

#include <gtest/gtest.h>

namespace trainyard::notify {
namespace {

TEST(IpBlock, ContainsAddressesOfItsPrefix) {
  const struct {
    const char *block, *address;
    bool inside;
  } rows[] = {
      {"10.0.0.0/8", "10.255.0.1", true},      {"10.0.0.0/8", "11.0.0.1", false},
      {"10.0.1.5", "10.0.1.5", true},          {"10.0.1.5", "10.0.1.6", false},
      {"10.0.0.128/25", "10.0.0.127", false},  {"10.0.0.128/25", "10.0.0.200", true},
      {"0.0.0.0/0", "8.8.8.8", true},          {"0.0.0.0/0", "::1", false},
      {"::/0", "2001:db8::1", true},           {"::/0", "8.8.8.8", false},
      {"fd00::/8", "fd12::1", true},           {"fd00::/8", "fe80::1", false},
      {"10.0.0.0/8", "::ffff:10.0.0.1", true},
  };
  for (const auto& row : rows) {
    const auto block = parse_ip_block(row.block);
    const auto address = parse_ip(row.address);
    ASSERT_TRUE(block && address) << row.block << " " << row.address;
    EXPECT_EQ(block->contains(*address), row.inside) << row.block << " " << row.address;
  }
}

TEST(IpBlock, RejectsInvalidTexts) {
  for (const char* text : {"", "10.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "fd00::/129",
                           "host.example", "010.1.1.1.1", "fe80::1%eth0", "1.2.3.4 "})
    EXPECT_FALSE(parse_ip_block(text)) << text;
}

TEST(MayConnect, RejectsAddressesOutsideThePublicInternet) {
  const struct {
    const char* address;
    bool allowed;
  } rows[] = {
      {"8.8.8.8", true},           {"127.0.0.1", false}, {"10.1.2.3", false},
      {"172.31.0.1", false},       {"172.32.0.1", true}, {"192.168.0.1", false},
      {"169.254.169.254", false},  // metadata of clouds
      {"100.64.0.1", false},       {"0.0.0.0", false},   {"224.0.0.1", false},
      {"255.255.255.255", false},  {"::1", false},       {"::", false},
      {"fe80::1", false},          {"fd00::1", false},   {"2606:4700::1111", true},
      {"::ffff:127.0.0.1", false},  // mapped
      {"::127.0.0.1", false},       // compatible
      {"2002:7f00:1::", false},     // 6to4 of 127.0.0.1
      {"2002:808:808::", true},     // 6to4 of 8.8.8.8
      {"64:ff9b::7f00:1", false},   // NAT64 of 127.0.0.1
      {"64:ff9b::808:808", true},
  };
  for (const auto& row : rows)
    EXPECT_EQ(may_connect(*parse_ip(row.address), {}), row.allowed) << row.address;
}

TEST(MayConnect, AllowsTheBlocksOfTheConfig) {
  const std::vector<IpBlock> allowed = {*parse_ip_block("10.1.0.0/16")};
  EXPECT_TRUE(may_connect(*parse_ip("10.1.2.3"), allowed));
  EXPECT_FALSE(may_connect(*parse_ip("10.2.2.3"), allowed));
  EXPECT_TRUE(may_connect(*parse_ip("8.8.8.8"), allowed));
  EXPECT_TRUE(may_connect(*parse_ip("64:ff9b::a01:203"), allowed));
}

}  // namespace
}  // namespace trainyard::notify
