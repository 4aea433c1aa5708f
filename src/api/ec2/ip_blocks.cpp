#include "ec2/ip_blocks.hpp"

#include "base/text.hpp"
#include "policy/ip_range.hpp"

namespace trainyard::api::ec2 {
namespace {

Result<policy::IpRange> read_block(std::string_view text, bool v6) {
  const auto range = policy::parse_ip_range(text);
  const bool written_v6 = text.find(':') != std::string_view::npos;
  if (!range || text.find('/') == std::string_view::npos || written_v6 != v6)
    return invalid("invalid CIDR block: '" + shorten(text, 60) + "'");
  return *range;
}

}  // namespace

Result<Ipv4Block> parse_ipv4_block(std::string_view text) {
  const policy::IpRange range = TRY(read_block(text, false));
  Ipv4Block block{0, range.prefix_bits};
  for (size_t i = 0; i < 4; ++i) block.first = block.first << 8 | range.first.bytes[i];
  block.first &= uint32_t(~(block.size() - 1));
  return block;
}

std::string to_string(const Ipv4Block& block) {
  std::string out;
  for (const unsigned shift : {24u, 16u, 8u, 0u})
    out += std::to_string(block.first >> shift & 0xff) + (shift == 0 ? "/" : ".");
  return out + std::to_string(block.prefix_bits);
}

bool contains(const Ipv4Block& outer, const Ipv4Block& inner) {
  return outer.first <= inner.first && inner.end() <= outer.end();
}

bool overlap(const Ipv4Block& a, const Ipv4Block& b) {
  return a.first < b.end() && b.first < a.end();
}

Result<std::string> checked_ipv6_block(std::string_view text) {
  TRY(read_block(text, true));
  return to_lower(text);
}

}  // namespace trainyard::api::ec2
