// Writes and reads varints, the variable-length numbers of protobuf and Snappy: seven bits in each
// byte, the lowest first; the highest bit of a byte is set if more bytes follow.
//
// Threads: pure functions. Errors: none; reading a malformed varint returns nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard {

inline void append_varint(std::string& out, uint64_t number) {
  while (number >= 0x80) {
    out += char((number & 0x7f) | 0x80);
    number >>= 7;
  }
  out += char(number);
}

// Removes a varint from the front of `bytes`. Returns nullopt if it is truncated or exceeds 64
// bits.
inline std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = uint8_t(bytes.front());
    bytes.remove_prefix(1);
    if (shift == 63 && byte > 1) return std::nullopt;
    number |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

}  // namespace trainyard
