// Defines the compressions for float tensors that are sent between ranks.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard::gradients {

struct Compression {
  enum class Kind : uint8_t {
    none,
    f16,   // added as f16: half of f32's bytes, values up to 65504
    bf16,  // added as bf16: half of f32's bytes, its whole range, 8 bits of precision
    // a quarter of f32's bytes, and a scale for each block; errors are added in the next step
    // (int8.hpp)
    int8,
    low_rank,  // the product of two thin matrices; errors are added in the next step (low_rank.hpp)
  };
  Kind kind = Kind::none;
  uint32_t rank = 4;  // low_rank: columns of the thin matrices
  bool operator==(const Compression& other) const {
    return kind == other.kind && (kind != Kind::low_rank || rank == other.rank);
  }

  static constexpr uint32_t kRankMax = 128;  // more columns cost more than they save
};
inline constexpr int kCompressionsCount = 5;

std::string_view to_string(Compression::Kind kind);
// Returns "int8", or "low_rank of 4".
std::string to_string(const Compression& compression);

}  // namespace trainyard::gradients
