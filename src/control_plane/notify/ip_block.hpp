// Parses IP addresses and CIDR blocks, and decides to which addresses notifications may be sent.
//
// Threads: pure functions. Errors: invalid, with the text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::notify {

// An address as 16 bytes. An IPv4 address is IPv4-mapped (::ffff:a.b.c.d), so that one list of
// blocks covers both forms.
struct IpAddress {
  std::array<uint8_t, 16> bytes{};
  bool operator==(const IpAddress&) const = default;
  bool is_v4() const;
};

struct IpBlock {
  IpAddress address;
  int prefix_bits = 128;  // of the 128 bits of an address; IPv4 is mapped
  bool contains(const IpAddress& each) const;
};

// Parses "10.0.0.1" or "fd00::1".
Result<IpAddress> parse_ip(std::string_view text);
IpAddress ip_v4(uint32_t host_order);
// Parses "10.0.0.0/8" or "fd00::/8". An address without length is a block of one address.
Result<IpBlock> parse_ip_block(std::string_view text);

// Returns whether the server may connect to the address on behalf of a subscriber: it is on the
// public internet or in `allowed`. Addresses of this machine, of its networks and of tunnels to
// them (loopback, private, link-local, shared, multicast, reserved, and IPv6 forms that embed such
// an IPv4 address) must be in `allowed`. Otherwise, each principal that may subscribe could make
// the server send requests to services that trust its network.
bool may_connect(const IpAddress& address, const std::vector<IpBlock>& allowed);

}  // namespace trainyard::notify
