// Encodes outer gradients for the slow links between regions.
//
// A lossy coding drops part of its input. The caller (Replica) stores that part and adds it to the
// next input, so a coding has no state.
//
// Threads: plain values, pure functions. Errors: corrupt, if the bytes do not encode the expected
// number of numbers.
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
  f32,   // unchanged: 4 bytes per number
  f16,   // 2 bytes; for gradients between 1e-7 and 6e4
  bf16,  // 2 bytes, the range of f32
  int8,  // 1 byte, and a scale for each block (compress/int8.hpp)
};
inline constexpr Coding kCodingLast = Coding::int8;

Result<Coding> parse_coding(std::string_view name);  // "f32", "f16", "bf16", "int8"
std::string_view to_string(Coding coding);

// Returns the size of `numbers` encoded numbers.
size_t coded_bytes(Coding coding, size_t numbers);
std::string encode(Coding coding, std::span<const float> values);
Result<std::vector<float>> decode(Coding coding, std::string_view bytes, size_t numbers);

}  // namespace trainyard::local_sgd
