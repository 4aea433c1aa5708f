// Converts 16-bit and 8-bit floats, as IEEE 754 and OCP OFP8 define them, from and to float32.
// Rounds to nearest, ties to even.
//
// The results equal those of the processors' own conversions (F16C for f16) bit for bit, including
// NaN and subnormal numbers. So machines with and without these instructions compute the same sums.
//
// All functions are static, so that each file has its own copies, compiled for its processor
// (kernels.hpp explains why).
//
// Threads: pure functions.
#pragma once

#include <cstdint>

namespace trainyard::collectives::formats {

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds a finite float32 to a format with `Exponent` and `Mantissa` bits, as if the exponent had
// no upper limit. A result above the largest number of the format therefore compares greater than
// the bits of that number.
template <int Exponent, int Mantissa>
static inline uint32_t rounded(uint32_t magnitude) {
  constexpr int bias = (1 << (Exponent - 1)) - 1;
  const int exponent = int(magnitude >> 23) - 127 + bias;
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  // Subnormal results lose a bit for each power of two that they are below the smallest exponent.
  const int below = exponent <= 0 ? 1 - exponent : 0;
  const int shift = 23 - Mantissa + below;
  if (shift > 24) return 0;
  const uint32_t kept = mantissa >> shift;
  const uint32_t rest = mantissa & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  const uint32_t up = rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0;
  // The implicit bit is part of `kept` and adds one to the exponent; a carry out of the mantissa
  // adds another.
  return (exponent > 0 ? uint32_t(exponent - 1) << Mantissa : 0) + kept + up;
}

template <int Exponent, int Mantissa>
static inline float widened(uint32_t magnitude) {
  constexpr int bias = (1 << (Exponent - 1)) - 1;
  const uint32_t exponent = magnitude >> Mantissa;
  const uint32_t mantissa = magnitude & ((1u << Mantissa) - 1);
  if (exponent > 0) return float_of(((exponent + 127 - bias) << 23) | mantissa << (23 - Mantissa));
  // Subnormal: mantissa * 2^(1 - bias - Mantissa), which float32 represents exactly.
  return float(int(mantissa)) * float_of(uint32_t(127 + 1 - bias - Mantissa) << 23);
}

static inline float from_f16(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  uint32_t wide;
  if (magnitude >= 0x7c00) {
    wide = 0x7f800000 | (magnitude & 0x3ff) << 13 | (magnitude > 0x7c00 ? 0x400000 : 0);
  } else {
    wide = bits_of(widened<5, 10>(magnitude));
  }
  return float_of(sign | wide);
}

static inline uint16_t to_f16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  const uint32_t narrow = magnitude == 0x7f800000 ? 0x7c00 : rounded<5, 10>(magnitude);
  return uint16_t(sign | (narrow > 0x7c00 ? 0x7c00 : narrow));
}

static inline float from_bf16(uint16_t bits) { return float_of(uint32_t(bits) << 16); }

static inline uint16_t to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t narrow = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return uint16_t((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16 | 0x40) : narrow);
}

static inline float from_f8e5m2(uint8_t bits) { return from_f16(uint16_t(bits << 8)); }

static inline uint8_t to_f8e5m2(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t sign = bits >> 24 & 0x80;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint8_t(sign | 0x7f);
  const uint32_t narrow = magnitude == 0x7f800000 ? 0x7c : rounded<5, 2>(magnitude);
  return uint8_t(sign | (narrow > 0x7c ? 0x7c : narrow));
}

static inline float from_f8e4m3(uint8_t bits) {
  const uint32_t sign = uint32_t(bits & 0x80) << 24;
  const uint32_t magnitude = bits & 0x7f;
  if (magnitude == 0x7f) return float_of(sign | 0x7fc00000);
  return float_of(sign | bits_of(widened<4, 3>(magnitude)));
}

static inline uint8_t to_f8e4m3(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t sign = bits >> 24 & 0x80;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x7f800000) return uint8_t(sign | 0x7f);
  const uint32_t narrow = rounded<4, 3>(magnitude);
  return uint8_t(sign | (narrow > 0x7f ? 0x7f : narrow));
}

}  // namespace trainyard::collectives::formats
