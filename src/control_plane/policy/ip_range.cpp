#include "policy/ip_range.hpp"

#include <charconv>
#include <optional>
#include <string>

#include "base/text.hpp"

namespace trainyard::policy {
namespace {

constexpr size_t kGroups = 8;  // groups of 16 bits in an IPv6 address

// Parses a decimal number from 0 to `max`, without a sign or a leading zero (which some parsers
// treat as octal).
std::optional<unsigned> decimal(std::string_view text, unsigned max) {
  if (text.empty() || text.size() > 3 || (text[0] == '0' && text.size() > 1)) return std::nullopt;
  unsigned value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + unsigned(c - '0');
  }
  if (value > max) return std::nullopt;
  return value;
}

std::optional<IpAddress> parse_v4(std::string_view text) {
  IpAddress address;
  const auto parts = split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  for (size_t i = 0; i < 4; ++i) {
    const auto byte = decimal(parts[i], 255);
    if (!byte) return std::nullopt;
    address.bytes[i] = uint8_t(*byte);
  }
  return address;
}

// Returns the groups on one side of "::" as bytes, including an IPv4 address at the end.
std::optional<std::vector<uint8_t>> parse_groups(std::string_view text, bool may_end_in_v4) {
  std::vector<uint8_t> bytes;
  if (text.empty()) return bytes;
  const auto groups = split(text, ':');
  if (groups.size() > kGroups) return std::nullopt;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (may_end_in_v4 && i + 1 == groups.size() && groups[i].find('.') != std::string_view::npos) {
      const auto tail = parse_v4(groups[i]);
      if (!tail) return std::nullopt;
      bytes.insert(bytes.end(), tail->bytes.begin(), tail->bytes.begin() + 4);
      break;
    }
    unsigned value = 0;
    const char* end = groups[i].data() + groups[i].size();
    const auto [at, error] = std::from_chars(groups[i].data(), end, value, 16);
    if (groups[i].empty() || groups[i].size() > 4 || error != std::errc() || at != end)
      return std::nullopt;
    bytes.push_back(uint8_t(value >> 8));
    bytes.push_back(uint8_t(value));
  }
  return bytes;
}

std::optional<IpAddress> parse_v6(std::string_view text) {
  IpAddress address{.v6 = true};
  const size_t gap = text.find("::");
  const bool has_gap = gap != std::string_view::npos;
  const auto head = parse_groups(text.substr(0, gap), !has_gap);
  const auto tail = has_gap ? parse_groups(text.substr(gap + 2), true) : std::vector<uint8_t>{};
  if (!head || !tail) return std::nullopt;
  const size_t count = head->size() + tail->size();
  if (has_gap ? count >= 16 : count != 16) return std::nullopt;
  std::copy(head->begin(), head->end(), address.bytes.begin());
  std::copy(tail->begin(), tail->end(), address.bytes.end() - ptrdiff_t(tail->size()));
  return address;
}

constexpr unsigned kMappedBits = 96;  // ::ffff:0:0/96

bool is_mapped(const IpAddress& address) {
  if (!address.v6 || address.bytes[10] != 0xff || address.bytes[11] != 0xff) return false;
  for (size_t i = 0; i < 10; ++i)
    if (address.bytes[i] != 0) return false;
  return true;
}

IpAddress unmapped(const IpAddress& address) {
  IpAddress v4;
  std::copy(address.bytes.begin() + 12, address.bytes.end(), v4.bytes.begin());
  return v4;
}

// Parses an address as it is written: an IPv4 address that is mapped into IPv6 stays IPv6.
Result<IpAddress> parse_written(std::string_view text) {
  const auto found = text.find(':') == std::string_view::npos ? parse_v4(text) : parse_v6(text);
  if (!found)
    return invalid("invalid IP address '" + shorten(text, 60) +
                   "'; expected one like 192.0.2.1 or 2001:db8::1");
  return *found;
}

}  // namespace

Result<IpAddress> parse_ip_address(std::string_view text) {
  const IpAddress address = TRY(parse_written(text));
  return is_mapped(address) ? unmapped(address) : address;
}

Result<IpRange> parse_ip_range(std::string_view text) {
  const size_t slash = text.find('/');
  IpRange range{TRY(parse_written(text.substr(0, slash)))};
  const unsigned bits_max = range.first.v6 ? 128 : 32;
  range.prefix_bits = bits_max;
  if (slash != std::string_view::npos) {
    const auto bits = decimal(text.substr(slash + 1), bits_max);
    if (!bits)
      return invalid("invalid prefix length in '" + shorten(text, 60) + "': it must be 0 to " +
                     std::to_string(bits_max));
    range.prefix_bits = *bits;
  }
  if (is_mapped(range.first) && range.prefix_bits >= kMappedBits)
    range = {unmapped(range.first), range.prefix_bits - kMappedBits};
  return range;
}

bool IpRange::contains(const IpAddress& address) const {
  if (address.v6 != first.v6) return false;
  for (unsigned bit = 0; bit < prefix_bits; bit += 8) {
    const unsigned left = prefix_bits - bit;
    const auto mask = left >= 8 ? uint8_t(0xff) : uint8_t(0xff << (8 - left));
    if ((address.bytes[bit / 8] ^ first.bytes[bit / 8]) & mask) return false;
  }
  return true;
}

}  // namespace trainyard::policy
