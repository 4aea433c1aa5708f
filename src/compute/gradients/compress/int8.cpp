#include "gradients/compress/int8.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "collectives/reduce/float_formats.hpp"

namespace trainyard::gradients {
namespace {

constexpr float kSteps = 127;
// Below this the inverse of the scale overflows a float; such a block is sent in a later step.
constexpr float kMagnitudeMin = 1e-35f;
// Adding and subtracting it rounds to the nearest integer, ties to even.
constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23

// Decodes the bytes block by block: calls apply(value index, value).
template <class Apply>
void over_values(const std::byte* bytes, size_t elements, const Apply& apply) {
  const auto* __restrict numbers =
      reinterpret_cast<const int8_t*>(bytes + 4 * int8_blocks(elements));
  for (size_t begin = 0, block = 0; begin < elements; begin += kInt8BlockElements, ++block) {
    const size_t end = std::min(elements, begin + kInt8BlockElements);
    float scale;
    std::memcpy(&scale, bytes + 4 * block, sizeof scale);
    for (size_t i = begin; i < end; ++i) apply(i, float(numbers[i]) * scale);
  }
}

}  // namespace

void to_int8(float* __restrict values, size_t elements, std::byte* bytes) {
  auto* __restrict numbers = reinterpret_cast<int8_t*>(bytes + 4 * int8_blocks(elements));
  for (size_t begin = 0, block = 0; begin < elements; begin += kInt8BlockElements, ++block) {
    const size_t end = std::min(elements, begin + kInt8BlockElements);
    // Magnitudes are ordered like their bits, NaN last: comparing integers vectorises.
    int32_t largest_bits = 0;
    for (size_t i = begin; i < end; ++i) {
      const auto bits = int32_t(collectives::formats::bits_of(values[i]) & 0x7fffffff);
      largest_bits = bits > largest_bits ? bits : largest_bits;
    }
    const bool finite = largest_bits < 0x7f800000;
    const float largest = collectives::formats::float_of(uint32_t(largest_bits));
    float scale = largest / kSteps;
    if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
    if (largest < kMagnitudeMin) scale = 0;
    std::memcpy(bytes + 4 * block, &scale, sizeof scale);
    if (!finite || scale == 0) {
      for (size_t i = begin; i < end; ++i) numbers[i] = 0;
      for (size_t i = begin; i < end && !finite; ++i) values[i] = 0;
      continue;
    }
    const float inverse = kSteps / largest;
    // Two loops, so that the one in floats and the one to bytes vectorise.
    float nearest[kInt8BlockElements];
    for (size_t i = begin; i < end; ++i) {
      const float rounded = (values[i] * inverse + kRounder) - kRounder;
      const float below = rounded > kSteps ? kSteps : rounded;
      nearest[i - begin] = below < -kSteps ? -kSteps : below;
      values[i] -= nearest[i - begin] * scale;
    }
    for (size_t i = begin; i < end; ++i) numbers[i] = int8_t(int32_t(nearest[i - begin]));
  }
}

void from_int8(const std::byte* bytes, size_t elements, float* __restrict values) {
  over_values(bytes, elements, [values](size_t i, float value) { values[i] = value; });
}

void add_int8(const std::byte* bytes, size_t elements, float* __restrict values) {
  over_values(bytes, elements, [values](size_t i, float value) { values[i] += value; });
}

}  // namespace trainyard::gradients
