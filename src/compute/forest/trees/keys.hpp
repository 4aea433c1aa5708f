// Derives random numbers from the identities of rows, so that they do not depend on which host
// reads a row, or when.
//
// The sample of a tree consists of the rows with the smallest keys of that tree. A key is a hash of
// seed, tree and row: it is uniform like a random number, and equal on every host. The smallest
// keys of a union are among the smallest keys of its parts, so samples of several hosts can be
// merged exactly.
//
// Sources: "bottom-k" sampling, E. Cohen and H. Kaplan, "Summarizing data using bottom-k sketches",
// PODC 2007; weighted keys, P. Efraimidis and P. Spirakis, "Weighted random sampling with a
// reservoir", IPL 97 (2006); the mixing function is the finaliser of SplitMix64 (G. Steele, D. Lea,
// C. Flood, OOPSLA 2014).
//
// Threads: pure functions; a RandomStream is confined to one. Errors: none.
#pragma once

#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>

namespace trainyard::forest {

constexpr uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio, odd

// Identifies a row of a data set: a hash of its object's name, and its number in the object.
struct RowId {
  uint64_t object = 0;
  uint64_t number = 0;
  auto operator<=>(const RowId&) const = default;
};

constexpr uint64_t hash_of(RowId row, uint64_t seed) {
  return mix(mix(mix(seed + kGolden) ^ row.object) + row.number * kGolden);
}
constexpr uint64_t salt_of(uint64_t tree, uint64_t seed) {
  return mix(mix(seed ^ 0x74726565) + (tree + 1) * kGolden);
}
// Returns the key of a row in a tree. Rows with different hashes have different keys.
constexpr uint64_t key_of(uint64_t row_hash, uint64_t tree_salt) {
  return mix(row_hash ^ tree_salt);
}

// Returns a key with which a row of weight exp(log_weight) is sampled, from its uniform key. Keys
// are comparable with each other only if all of them are weighted.
inline uint64_t weighted_key(uint64_t uniform, double log_weight) {
  const double fraction = (double(uniform >> 11) + 0.5) * 0x1p-53;  // in (0, 1)
  const double order = std::log(-std::log(fraction)) - log_weight;
  // in the order of the numbers, apart from the sign
  const auto bits = std::bit_cast<uint64_t>(order);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}

// A RandomStream is the sequence of random numbers of one tree.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed = 0) : state_(seed) {}
  // Returns the next number, uniform in [0, 1).
  double fraction() { return double(mix(state_ += kGolden) >> 11) * 0x1p-53; }
  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace trainyard::forest
