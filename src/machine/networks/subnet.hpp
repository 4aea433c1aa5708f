// Defines IPv4 addresses and networks, as numbers.
//
// Threads: plain values. Errors: invalid.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::networks {

// An IPv4 address as a number: 10.0.0.1 is 0x0a000001.
using Address = uint32_t;
std::string to_text(Address address);
Result<Address> parse_address(std::string_view text);

struct Subnet {
  Address base = 0;
  int prefix = 32;  // number of bits that all its addresses have in common
  auto operator<=>(const Subnet&) const = default;
  uint64_t size() const { return uint64_t(1) << (32 - prefix); }
  bool contains(Address address) const {
    return address >= base && uint64_t(address) - base < size();
  }
  bool overlaps(const Subnet& other) const { return contains(other.base) || other.contains(base); }
  std::string text() const;  // "10.201.0.0/16"
};
// Parses "10.201.0.0/16". Errors: invalid, also if bits after the prefix are set.
Result<Subnet> parse_subnet(std::string_view text);

}  // namespace trainyard::networks
