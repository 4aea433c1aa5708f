// Computes with the shares that machines have and hosts request.
//
// Threads: pure. Units: as domain::Share. Private to this module.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "domain/job.hpp"

namespace trainyard::schedule {

using domain::Share;

// Fractions of vCPU are sums of quotients: a smaller difference is a rounding error, not capacity.
inline constexpr double kRoundingCpus = 1e-9;

inline Share plus(const Share& a, const Share& b) {
  return {a.cpus + b.cpus, a.memory_bytes + b.memory_bytes, a.gpus + b.gpus};
}
inline Share minus(const Share& a, const Share& b) {
  return {a.cpus - b.cpus, a.memory_bytes - b.memory_bytes, a.gpus - b.gpus};
}
inline Share least_of(const Share& a, const Share& b) {
  return {std::min(a.cpus, b.cpus), std::min(a.memory_bytes, b.memory_bytes),
          std::min(a.gpus, b.gpus)};
}
inline bool within(const Share& part, const Share& whole) {
  return part.cpus <= whole.cpus + kRoundingCpus && part.memory_bytes <= whole.memory_bytes &&
         part.gpus <= whole.gpus;
}
inline bool same(const Share& a, const Share& b) {
  return a.cpus == b.cpus && a.memory_bytes == b.memory_bytes && a.gpus == b.gpus;
}

// One number to compare shares by: a GPU counts as 16 vCPU, 4 GiB as one.
inline double size_of(const Share& share) {
  constexpr double kFourGib = 4.0 * 1024 * 1024 * 1024;
  return std::max(0.0, share.cpus) + double(std::max<int64_t>(0, share.memory_bytes)) / kFourGib +
         double(std::max<int64_t>(0, share.gpus)) * 16;
}
// How far `needs` exceeds `free`.
inline double shortfall(const Share& needs, const Share& free) {
  Share over = minus(needs, free);
  over.cpus -= kRoundingCpus;
  return size_of(over);
}

// The number of hosts of `part` that `whole` holds; the largest count for a host that requests
// nothing.
inline int64_t times_within(const Share& part, const Share& whole) {
  int64_t times = INT32_MAX;
  if (whole.cpus < -kRoundingCpus || whole.memory_bytes < 0 || whole.gpus < 0)
    return within(part, whole) ? 1 : 0;
  if (part.cpus > 0)
    times = std::min(times, int64_t(std::floor((whole.cpus + kRoundingCpus) / part.cpus)));
  if (part.memory_bytes > 0) times = std::min(times, whole.memory_bytes / part.memory_bytes);
  if (part.gpus > 0) times = std::min(times, whole.gpus / part.gpus);
  return std::max<int64_t>(0, times);
}

}  // namespace trainyard::schedule
