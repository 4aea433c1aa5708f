// Writes and reads little-endian numbers in byte strings.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace trainyard::observe {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "numbers in files have the byte order of memory");

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Requires: at + sizeof(Number) <= bytes.size().
template <class Number>
Number get(std::string_view bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

}  // namespace trainyard::observe
