// Writes and reads integers as little-endian bytes, for formats that fields.hpp does not describe.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard {

// Appends the low `count` bytes of `value`.
inline void append_little_endian(std::string& bytes, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes += char(uint8_t(value >> (8 * i)));
}

// Returns the value of all bytes. Requires: at most 8 bytes.
inline uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | uint8_t(bytes[i]);
  return value;
}

// Returns the value of the first 4 bytes. Requires: at least 4 bytes.
inline uint32_t little_endian_u32(std::string_view bytes) {
  return uint32_t(little_endian(bytes.substr(0, 4)));
}

}  // namespace trainyard
