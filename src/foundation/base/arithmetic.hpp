// Computes with integers that come from outside, and detects or saturates overflows.
//
//   const auto bytes = checked_mul<int64_t>(count, size);
//   if (!bytes) return invalid("count x size is too large");
//
// Threads: pure. Errors: if the result does not fit, checked_* return nullopt and saturating_* the
// nearest value.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/time.hpp"

namespace trainyard {

template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

template <std::integral T>
constexpr T saturating_add(T a, T b) {
  T sum{};
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < T{} ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

template <std::integral T>
constexpr T saturating_mul(T a, T b) {
  T product{};
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < T{}) != (b < T{}) ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

// Converts a double; values out of range become the nearest limit of T, and NaN becomes 0.
template <std::integral T>
constexpr T saturating_cast(double value) {
  if (!(value == value)) return 0;
  // The largest T may round up to a double that is out of range.
  if (value >= double(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (value <= double(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return T(value);
}

// A Duration counts milliseconds in 64 bits, so a number of seconds from outside may not fit.
constexpr Duration saturating_seconds(int64_t seconds) {
  return Duration{saturating_mul<int64_t>(seconds, 1000)};
}

constexpr Instant saturating_add(Instant at, Duration by) {
  return Instant{Duration{saturating_add<int64_t>(at.time_since_epoch().count(), by.count())}};
}

}  // namespace trainyard
