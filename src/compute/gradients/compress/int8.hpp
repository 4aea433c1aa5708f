// Encodes float32 as bytes with a scale for each block: a quarter of the bytes, and a bounded
// error.
//
//   a block of kInt8BlockElements: scale = largest magnitude / 127; each value becomes the nearest
//     multiple of it
//   in memory: the scales of the blocks as f32, then a signed byte for each value
//
// The error of a value is at most half a scale. Error feedback stores it and adds it to the value
// of the next step, so values are delayed but not lost. The errors do not grow, since each is at
// most 1/254 of the largest value of its block. A block with a NaN or an infinite value becomes
// NaN, and stores no error.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard::gradients {

// The scales take 1.6 % of the bytes. In larger blocks, one large value would cost more precision.
inline constexpr size_t kInt8BlockElements = 256;

constexpr size_t int8_blocks(size_t elements) {
  return (elements + kInt8BlockElements - 1) / kInt8BlockElements;
}
constexpr size_t int8_bytes(size_t elements) { return elements + 4 * int8_blocks(elements); }

// Replaces `values` by their errors. Requires: `bytes` has space for int8_bytes(elements).
void to_int8(float* values, size_t elements, std::byte* bytes);
void from_int8(const std::byte* bytes, size_t elements, float* values);
// Adds decoded value i to values[i].
void add_int8(const std::byte* bytes, size_t elements, float* values);

}  // namespace trainyard::gradients
