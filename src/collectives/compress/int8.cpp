#include "collectives/compress/int8.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace trainyard::collectives {
namespace {

constexpr float steps = 127;
// Below this the scale's inverse has no room in a float; such a block is late as a whole.
constexpr float magnitude_min = 1e-35f;
// Added and taken away again it rounds to the nearest integer, ties to even.
constexpr float rounder = 12582912.0f;  // 1.5 * 2^23

// What the bytes mean, block by block: apply(value index, value).
template <class Apply>
void over_values(const std::byte* bytes, size_t elements, const Apply& apply) {
  const auto* numbers = reinterpret_cast<const int8_t*>(bytes + 4 * int8_blocks(elements));
  for (size_t begin = 0, block = 0; begin < elements; begin += int8_block_elements, ++block) {
    const size_t end = std::min(elements, begin + int8_block_elements);
    float scale;
    std::memcpy(&scale, bytes + 4 * block, sizeof scale);
    for (size_t i = begin; i < end; ++i) apply(i, float(numbers[i]) * scale);
  }
}

}  // namespace

void to_int8(float* values, size_t elements, std::byte* bytes) {
  auto* numbers = reinterpret_cast<int8_t*>(bytes + 4 * int8_blocks(elements));
  for (size_t begin = 0, block = 0; begin < elements; begin += int8_block_elements, ++block) {
    const size_t end = std::min(elements, begin + int8_block_elements);
    float largest = 0;
    bool finite = true;
    for (size_t i = begin; i < end; ++i) {
      const float magnitude = std::fabs(values[i]);
      largest = magnitude > largest ? magnitude : largest;
      finite &= magnitude <= std::numeric_limits<float>::max();
    }
    float scale = largest / steps;
    if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
    if (largest < magnitude_min) scale = 0;
    std::memcpy(bytes + 4 * block, &scale, sizeof scale);
    if (!finite || scale == 0) {
      for (size_t i = begin; i < end; ++i) numbers[i] = 0;
      for (size_t i = begin; i < end && !finite; ++i) values[i] = 0;
      continue;
    }
    const float inverse = steps / largest;
    for (size_t i = begin; i < end; ++i) {
      float nearest = (values[i] * inverse + rounder) - rounder;
      nearest = nearest > steps ? steps : nearest < -steps ? -steps : nearest;
      numbers[i] = int8_t(nearest);
      values[i] -= nearest * scale;
    }
  }
}

void from_int8(const std::byte* bytes, size_t elements, float* values) {
  over_values(bytes, elements, [values](size_t i, float value) { values[i] = value; });
}

void add_int8(const std::byte* bytes, size_t elements, float* values) {
  over_values(bytes, elements, [values](size_t i, float value) { values[i] += value; });
}

}  // namespace trainyard::collectives
