// Compares samples in tests, bit for bit.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "observe/metrics.hpp"

namespace trainyard::observe {

inline bool same_sample(const Sample& a, const Sample& b) {
  const auto bits = [](double number) { return std::bit_cast<uint64_t>(number); };
  return a.at == b.at && a.unit == b.unit && bits(a.count) == bits(b.count) &&
         bits(a.sum) == bits(b.sum) && bits(a.minimum) == bits(b.minimum) &&
         bits(a.maximum) == bits(b.maximum);
}
inline bool same_samples(std::span<const Sample> a, std::span<const Sample> b) {
  return std::ranges::equal(a, b, same_sample);
}

}  // namespace trainyard::observe
