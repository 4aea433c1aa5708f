// Stores parts of tensors (shards). Each rank of a program writes a file with its parts, and a
// program with any number of ranks reads the parts that it needs.
//
// A file of shards is a safetensors file. A part is stored as a tensor of one dimension with the
// name of the whole tensor. The metadata "shard.NAME" is {"shape": [..], "begin": N}: the shape of
// the whole tensor, and the position of the part among its elements in row-major order. Metadata
// "format" is "trainyard-shards"; "rank", "ranks" and "steps" are decimal numbers.
//
// Threads: plain values; pure functions. Errors: corrupt, naming the tensor or the metadata.
// Units: positions and shapes in elements.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "checkpoint/safetensors.hpp"

namespace trainyard::checkpoint {

inline constexpr std::string_view kShardsFormat = "trainyard-shards";
inline constexpr int kShardRanksMax = 1 << 20;  // more than any program uses

// A Shard refers to consecutive elements of a tensor, in memory that the caller owns.
struct Shard {
  Type type = Type::f32;
  std::vector<uint64_t> shape;  // shape of the whole tensor
  uint64_t begin = 0;
  std::string_view bytes;

  uint64_t count() const { return bytes.size() / bytes_of(type); }
};

struct ShardFile {
  int rank = 0, ranks = 1;
  int64_t steps = 0;                    // training steps so far
  std::map<std::string, Shard> shards;  // by the name of the whole tensor
};

// Returns contents that refer to the bytes of the shards.
Contents encode_shards(const ShardFile& file);
// Checks that every shard is within its tensor.
Result<ShardFile> decode_shards(const Contents& contents);

// A part that a reader needs, and the memory to which it is copied.
struct WantedShard {
  Type type = Type::f32;
  std::vector<uint64_t> shape;
  uint64_t begin = 0, count = 0;
  char* to = nullptr;
  std::vector<std::pair<uint64_t, uint64_t>> copied;  // begin and end of each copy, in the tensor
};

// Copies the elements that `wanted` needs from a file. Errors: also corrupt, if a tensor has
// another type or shape.
Result<void> copy_shards(const ShardFile& file, std::map<std::string, WantedShard>& wanted);
// Checks that each wanted element was in exactly one file. Requires: copy_shards was called for all
// files of the checkpoint.
Result<void> check_complete(const std::map<std::string, WantedShard>& wanted);

}  // namespace trainyard::checkpoint
