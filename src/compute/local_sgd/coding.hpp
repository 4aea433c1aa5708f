// How an outer gradient is written for the slow link: what regions pay by the byte.
//
// A coding forgets some of what it is given; whoever encodes keeps the rest for the next time (Replica does), so it needs
// no memory of its own.
//
// Threads: plain values, pure functions. Errors: corrupt, when bytes cannot be such a gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::local_sgd {

enum class Coding : uint8_t {
  f32,   // as it is: 4 bytes a number
  f16,   // 2 bytes; for gradients between 1e-7 and 6e4
  bf16,  // 2 bytes, f32's range
  int8,  // 1 byte and a scale for each block (compress/int8.hpp)
};
inline constexpr Coding coding_last = Coding::int8;

Result<Coding> parse_coding(std::string_view name);  // "f32", "f16", "bf16", "int8"
std::string_view to_string(Coding coding);

// How many bytes `numbers` become.
size_t coded_bytes(Coding coding, size_t numbers);
std::string encode(Coding coding, std::span<const float> values);
Result<std::vector<float>> decode(Coding coding, std::string_view bytes, size_t numbers);

}  // namespace trainyard::local_sgd
