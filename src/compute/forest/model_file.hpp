// Encodes and decodes a forest in the format of docs/formats/random-cut-forest.md.
//
// The boxes of trees are not stored, since they are computed from the points. Equal forests have
// equal bytes.
//
// Threads: pure functions. Errors: corrupt, naming the fault; exhausted, if the forest needs more
// than `memory_max`. The bytes are untrusted: a count allocates no more memory than the bytes
// justify, except for the boxes of trees (8 bytes per dimension and node), which `memory_max`
// limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "forest/trees/forest.hpp"

namespace trainyard::forest {

inline constexpr std::string_view kForestFile = "random-cut-forest.model";
inline constexpr uint64_t kModelBytesMax = uint64_t{16} << 30;

std::string encode_forest(const Forest& forest);
Result<Forest> decode_forest(std::string_view bytes, uint64_t memory_max = kModelBytesMax);

}  // namespace trainyard::forest
