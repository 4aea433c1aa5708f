// An Ipv4Block is a range of IPv4 addresses in CIDR notation.
//
// Threads: plain values and pure functions. Errors: invalid, naming the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::api::ec2 {

struct Ipv4Block {
  uint32_t first = 0;
  unsigned prefix_bits = 0;  // 0 to 32

  uint64_t size() const { return uint64_t{1} << (32 - prefix_bits); }
  uint64_t end() const { return first + size(); }
};

// Parses "10.0.0.0/16". Clears host bits, as AWS does: "10.0.0.7/24" becomes 10.0.0.0/24.
Result<Ipv4Block> parse_ipv4_block(std::string_view text);
std::string to_string(const Ipv4Block& block);
bool contains(const Ipv4Block& outer, const Ipv4Block& inner);
bool overlap(const Ipv4Block& a, const Ipv4Block& b);

// Checks "2001:db8::/32", and returns it in lower case.
Result<std::string> checked_ipv6_block(std::string_view text);

}  // namespace trainyard::api::ec2
