#include "notify/ip_block.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::notify {
namespace {

constexpr size_t kAddressBytesMax = 64;  // longer texts are not addresses
constexpr int kMappedBits = 96;

// Addresses that are not on the public internet (IANA's special-purpose registries).
constexpr std::string_view kSpecial[] = {
    "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",    "240.0.0.0/4",
    "::/96",         "100::/64",        "2001::/23",      "2001:db8::/32",  "3fff::/20",
    "5f00::/16",     "fc00::/7",        "fe80::/10",      "fec0::/10",      "ff00::/8",
    "64:ff9b:1::/48"};

const std::vector<IpBlock>& special_blocks() {
  static const std::vector<IpBlock> kBlocks = [] {
    std::vector<IpBlock> blocks;
    for (const auto text : kSpecial) {
      const auto block = parse_ip_block(text);
      CHECK(block, "the table has only valid blocks");
      blocks.push_back(*block);
    }
    return blocks;
  }();
  return kBlocks;
}

bool is_in(const std::vector<IpBlock>& blocks, const IpAddress& address) {
  return std::ranges::any_of(blocks, [&](const IpBlock& block) { return block.contains(address); });
}

IpAddress v4_at(const IpAddress& address, size_t offset) {
  IpAddress out = ip_v4(0);
  std::copy_n(address.bytes.begin() + long(offset), 4, out.bytes.begin() + 12);
  return out;
}

}  // namespace

bool IpAddress::is_v4() const {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(bytes.data(), kMapped, sizeof kMapped) == 0;
}

bool IpBlock::contains(const IpAddress& each) const {
  // IPv4 addresses are mapped into IPv6, but "::/0" must not contain them.
  if (address.is_v4() != each.is_v4()) return false;
  for (int bit = 0; bit < prefix_bits; bit += 8) {
    const int left = std::min(8, prefix_bits - bit);
    const auto mask = uint8_t(0xff << (8 - left));
    if ((address.bytes[size_t(bit / 8)] & mask) != (each.bytes[size_t(bit / 8)] & mask))
      return false;
  }
  return true;
}

IpAddress ip_v4(uint32_t host_order) {
  IpAddress out;
  out.bytes[10] = out.bytes[11] = 0xff;
  for (int i = 0; i < 4; ++i) out.bytes[size_t(12 + i)] = uint8_t(host_order >> (24 - 8 * i));
  return out;
}

Result<IpAddress> parse_ip(std::string_view text) {
  const std::string whole(text.substr(0, kAddressBytesMax));
  if (text.size() < kAddressBytesMax) {
    in_addr v4{};
    if (::inet_pton(AF_INET, whole.c_str(), &v4) == 1) return ip_v4(ntohl(v4.s_addr));
    IpAddress out;
    if (whole.find('%') == whole.npos && ::inet_pton(AF_INET6, whole.c_str(), &out.bytes) == 1)
      return out;
  }
  return invalid("invalid IP address '" + shorten(text, 80) + "'; expected one like 10.20.0.1");
}

Result<IpBlock> parse_ip_block(std::string_view text) {
  const auto slash = text.find('/');
  IpBlock block{TRY(parse_ip(text.substr(0, slash)))};
  if (slash == std::string_view::npos) return block;
  const auto bits = parse_int(text.substr(slash + 1));
  const bool v4 = text.find(':') == std::string_view::npos;
  if (!bits || *bits < 0 || *bits > (v4 ? 32 : 128))
    return invalid("invalid CIDR block '" + shorten(text, 80) +
                   "'; expected one like 10.20.0.0/16");
  block.prefix_bits = int(*bits) + (v4 ? kMappedBits : 0);
  return block;
}

bool may_connect(const IpAddress& address, const std::vector<IpBlock>& allowed) {
  if (is_in(allowed, address)) return true;
  if (is_in(special_blocks(), address)) return false;
  if (address.is_v4()) return true;
  // 6to4 (2002::/16) and NAT64 (64:ff9b::/96) are tunnels to the embedded IPv4 address.
  const auto& bytes = address.bytes;
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return may_connect(v4_at(address, 2), allowed);
  static const IpBlock kNat64 = *parse_ip_block("64:ff9b::/96");
  if (kNat64.contains(address)) return may_connect(v4_at(address, 12), allowed);
  return true;
}

}  // namespace trainyard::notify
