// How a float tensor is made smaller on its way between ranks: the choice, as a value.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainyard::collectives {

struct Compression {
  enum class Kind : uint8_t {
    none,
    f16,   // added as f16: half of f32's bytes, a range of 65504
    bf16,  // added as bf16: half of f32's bytes and all of its range, 8 bits of precision
  };
  Kind kind = Kind::none;
  bool operator==(const Compression&) const = default;
};
inline constexpr int compressions_count = 3;

std::string_view to_string(Compression::Kind kind);

}  // namespace trainyard::collectives
