// Compares IPv4 and IPv6 addresses with CIDR ranges, for condition operators.
//
// An IPv4 address that is mapped into IPv6 (::ffff:192.0.2.1) equals the IPv4 address.
//
// Threads: plain values. Errors: invalid, naming the text.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::policy {

struct IpAddress {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};  // the first four of IPv4
};

struct IpRange {
  IpAddress first;
  unsigned prefix_bits = 0;
  bool contains(const IpAddress& address) const;
};

Result<IpAddress> parse_ip_address(std::string_view text);
// Parses "192.0.2.0/24", "2001:db8::/32", or one address.
Result<IpRange> parse_ip_range(std::string_view text);

}  // namespace trainyard::policy
