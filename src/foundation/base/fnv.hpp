// Computes FNV-1a hashes of 64 bits: equal on every machine and in every release, and not secure
// against collisions.
//
//   const uint64_t hash = fnv1a("part two", fnv1a("part one"));
//
// Threads: pure functions. Source: Fowler, Noll and Vo's hash function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace trainyard {

inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325;

constexpr uint64_t fnv1a_step(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x100000001b3;
}

constexpr uint64_t fnv1a(std::string_view bytes, uint64_t hash = kFnvBasis) {
  for (const char each : bytes) hash = fnv1a_step(hash, uint8_t(each));
  return hash;
}

constexpr uint64_t fnv1a(std::span<const std::byte> bytes, uint64_t hash = kFnvBasis) {
  for (const std::byte each : bytes) hash = fnv1a_step(hash, uint64_t(each));
  return hash;
}

}  // namespace trainyard
