// float32 as bytes with a scale for each block: a quarter of the bytes, and a known error.
//
//   a block of int8_block_elements: scale = the largest magnitude / 127, each value the nearest multiple of it
//   in memory: the blocks' scales as f32, then a signed byte for each value
//
// A value's error is at most half a scale. Error feedback keeps it and adds it to the next step's value, so that
// nothing is lost, only late: the errors do not grow, since each is at most 1/254 of the largest value of its block.
// A block that holds what is no number becomes NaN, and keeps no error.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard::gradients {

inline constexpr size_t int8_block_elements =
    256;  // 1.6 % for scales; larger ones lose more to one large value

constexpr size_t int8_blocks(size_t elements) {
  return (elements + int8_block_elements - 1) / int8_block_elements;
}
constexpr size_t int8_bytes(size_t elements) { return elements + 4 * int8_blocks(elements); }

// `values` become what was lost of them. Requires: `bytes` holds int8_bytes(elements).
void to_int8(float* values, size_t elements, std::byte* bytes);
void from_int8(const std::byte* bytes, size_t elements, float* values);
// values[i] += what the bytes mean
void add_int8(const std::byte* bytes, size_t elements, float* values);

}  // namespace trainyard::gradients
