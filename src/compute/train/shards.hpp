// Reads the shards of this host, and agrees with the other hosts on one order of all rows.
//
// A channel is a folder of CSV files, its shards. The platform decides which host has which shards
// (all or some), but the order of the rows must not depend on that. So shards are ordered by name
// over all hosts, rows keep their order within the shard, and the position of a row is its number
// in the whole data set. If several hosts have a shard, all of them read it, but its rows belong to
// one host.
//
// Threads: plain values. Errors: those of files; invalid, naming shard, line and column.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "train/table.hpp"

namespace trainyard::train {

// A shard is read into memory at once; larger shards must be split.
inline constexpr size_t kShardBytesMax = size_t{1} << 30;
// Rows of all hosts: each host shuffles all row numbers in memory.
inline constexpr uint64_t kRowsMax = uint64_t{1} << 31;

struct Shard {
  std::string name;  // path below the channel's folder; equal on every host that has the shard
  Table table;
};

// Reads every regular file below `folder`, in the order of names. A missing folder counts as empty,
// since a host may have no shard.
Result<std::vector<Shard>> read_shards(const std::string& folder);

class Rows {
 public:
  // Agrees on the order of all rows. All ranks of the group call it, each with the shards of its
  // host.
  static Result<Rows> agree(std::vector<Shard> shards, collectives::Group& group);

  uint64_t all() const { return all_; }                     // rows of all hosts together
  uint64_t own_rows() const { return own_rows_; }           // rows that belong to this host
  size_t columns() const { return columns_; }               // equal in all rows
  int32_t largest_label() const { return largest_label_; }  // of all rows
  size_t shards_of_all() const { return shards_of_all_; }
  size_t own_shards() const { return blocks_.size(); }

  bool is_own(uint64_t row) const { return find(row) != nullptr; }
  // Requires: is_own(row).
  std::span<const float> features(uint64_t row) const;
  int32_t label(uint64_t row) const;

 private:
  // One shard of this host: rows begin .. begin + table.rows() of the whole.
  struct Block {
    uint64_t begin;
    Table table;
  };
  const Block* find(uint64_t row) const;

  std::vector<Block> blocks_;  // sorted by begin
  uint64_t all_ = 0;
  uint64_t own_rows_ = 0;
  size_t columns_ = 0;
  int32_t largest_label_ = -1;
  size_t shards_of_all_ = 0;
};

// Returns the numbers 0 .. rows-1 in the order of an epoch, which depends only on seed and epoch.
std::vector<uint32_t> shuffled_rows(uint64_t rows, uint64_t seed, uint64_t epoch);

// Hashes several numbers into one, for instance into the seed for a row's random numbers.
uint64_t mix(uint64_t a, uint64_t b, uint64_t c = 0);

}  // namespace trainyard::train
