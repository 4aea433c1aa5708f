// Encodes and decodes a pin: a list of blocks that the cache does not remove.
//
// A file is: magic (8 bytes), CRC-32C of all that follows (4), length of the name (4), the name,
// and for each block its hash (32) and the size of its file (4), ordered by hash. Numbers are
// little-endian. docs/formats/cache.md has the grammar.
//
// Threads: pure. Errors: corrupt: the file is not a pin, is truncated, or has flipped bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/sha256.hpp"

namespace trainyard::cache {

// The limit of blocks in a pin, whose file then has 75 MB. Callers leave out further blocks.
inline constexpr size_t kPinBlocksMax = 2 << 20;
inline constexpr size_t kPinNameBytesMax = 4 << 10;
inline constexpr size_t kPinFileBytesMax = 16 + kPinNameBytesMax + kPinBlocksMax * 36;

struct PinnedBlock {
  Digest hash{};
  uint32_t bytes = 0;  // of its file
  bool operator<(const PinnedBlock& other) const { return hash < other.hash; }
};

struct Pin {
  std::string name;                 // "job x, channel train", "s3://bucket/prefix"
  std::vector<PinnedBlock> blocks;  // ordered by hash, each once
};

// Requires: the limits above.
std::string encode_pin(const Pin& pin);
Result<Pin> decode_pin(std::string_view file);

}  // namespace trainyard::cache
