#include "policy/ip_range.hpp"

#include <gtest/gtest.h>

namespace trainyard::policy {
namespace {

TEST(IpRange, ContainsTheAddressesOfItsPrefix) {
  const struct {
    const char *range, *address;
    bool contains;
  } kTable[] = {
      {"192.0.2.0/24", "192.0.2.255", true},
      {"192.0.2.0/24", "192.0.3.0", false},
      {"192.0.2.7", "192.0.2.7", true},
      {"192.0.2.7", "192.0.2.8", false},
      {"0.0.0.0/0", "255.255.255.255", true},
      {"10.0.0.0/9", "10.127.255.255", true},
      {"10.0.0.0/9", "10.128.0.0", false},
      {"192.0.2.77/24", "192.0.2.1", true},
      {"2001:db8::/32", "2001:db8:1::5", true},
      {"2001:db8::/32", "2001:db9::", false},
      {"2001:DB8:1234:5678::/64", "2001:db8:1234:5678:ffff::1", true},
      {"::/0", "::1", true},
      {"::/0", "192.0.2.1", false},
      {"0.0.0.0/0", "::1", false},
      {"192.0.2.0/24", "::ffff:192.0.2.9", true},
      {"::ffff:192.0.2.0/120", "192.0.2.9", true},
      {"::ffff:0:0/96", "::ffff:192.0.2.9", true},
  };
  for (const auto& [range, address, expected] : kTable) {
    const auto parsed_range = parse_ip_range(range);
    const auto parsed = parse_ip_address(address);
    ASSERT_TRUE(parsed_range && parsed) << range << " " << address;
    EXPECT_EQ(parsed_range->contains(*parsed), expected) << range << " " << address;
  }
}

TEST(IpRange, RejectsInvalidAddresses) {
  for (const char* text : {"",
                           "1",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.256",
                           "01.2.3.4",
                           "1.2.3.4/33",
                           "1.2.3.4/",
                           "1.2.3.4/-1",
                           "1.2.3.4/08",
                           "1.2.3.4 ",
                           ":",
                           ":::",
                           "1::2::3",
                           "12345::",
                           "::1.2.3",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7::8",
                           "1.2.3.4::",
                           "::/129",
                           "fe80::1%eth0"})
    EXPECT_FALSE(parse_ip_range(text)) << text;
  EXPECT_EQ(parse_ip_range("1.2.3.4/33").error().message,
            "invalid prefix length in '1.2.3.4/33': it must be 0 to 32");
}

}  // namespace
}  // namespace trainyard::policy
