#include "ec2/ip_blocks.hpp"

#include <gtest/gtest.h>

namespace trainyard::api::ec2 {
namespace {

Ipv4Block block(std::string_view text) { return parse_ipv4_block(text).value(); }

TEST(Ipv4Blocks, AreParsedAndFormatted) {
  for (const char* text : {"10.0.0.0/16", "0.0.0.0/0", "255.255.255.255/32", "172.31.240.0/20"})
    EXPECT_EQ(to_string(block(text)), text);
  EXPECT_EQ(to_string(block("10.1.2.3/8")), "10.0.0.0/8");
  EXPECT_EQ(to_string(block("1.2.3.4/0")), "0.0.0.0/0");
  for (const char* text : {"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0/8", "10.0.0.256/8",
                           "010.0.0.0/8", "10.0.0.0/8 ", "2001:db8::/32", "::ffff:10.0.0.0/104"})
    EXPECT_FALSE(parse_ipv4_block(text)) << text;
}

TEST(Ipv4Blocks, HaveASize) {
  EXPECT_EQ(block("0.0.0.0/0").size(), uint64_t{1} << 32);
  EXPECT_EQ(block("255.255.255.255/32").end(), uint64_t{1} << 32);
  EXPECT_EQ(block("10.0.0.0/24").size(), 256u);
}

TEST(Ipv4Blocks, ContainAndOverlap) {
  EXPECT_TRUE(contains(block("10.0.0.0/16"), block("10.0.255.0/24")));
  EXPECT_TRUE(contains(block("10.0.0.0/16"), block("10.0.0.0/16")));
  EXPECT_FALSE(contains(block("10.0.0.0/16"), block("10.1.0.0/24")));
  EXPECT_FALSE(contains(block("10.0.0.0/24"), block("10.0.0.0/16")));
  EXPECT_TRUE(contains(block("0.0.0.0/0"), block("255.255.255.255/32")));
  EXPECT_TRUE(overlap(block("10.0.0.0/16"), block("10.0.128.0/17")));
  EXPECT_TRUE(overlap(block("10.0.128.0/17"), block("10.0.0.0/16")));
  EXPECT_FALSE(overlap(block("10.0.0.0/25"), block("10.0.0.128/25")));
}

TEST(Ipv6Blocks, AreCheckedAndLowerCase) {
  EXPECT_EQ(checked_ipv6_block("2001:DB8::/32").value(), "2001:db8::/32");
  EXPECT_EQ(checked_ipv6_block("::/0").value(), "::/0");
  for (const char* text : {"", "::", "::/129", "10.0.0.0/8", "2001:db8:::/32"})
    EXPECT_FALSE(checked_ipv6_block(text)) << text;
}

}  // namespace
}  // namespace trainyard::api::ec2
