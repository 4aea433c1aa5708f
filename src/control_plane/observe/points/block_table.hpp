// Stores blocks of points in the table `blocks` of the metrics' database. The blocks of a metric
// are in the order of time.
//
// If block a is followed by block b, then the last time of a is before the first time of b, or all
// points of a have the first time of b. Points of one time are in the order of their appends.
//
// Threads: as the connection. Functions that change blocks run within Database::write. Errors:
// those of sqlite/connection.hpp; corrupt, if a block that is read is invalid. A change moves a
// corrupt block to the table `corrupt_blocks`, and logs it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "observe/database.hpp"
#include "observe/metrics.hpp"

namespace trainyard::observe {

inline constexpr const char* kBlockSchema = R"(
  CREATE TABLE IF NOT EXISTS blocks (
    series INTEGER NOT NULL, first INTEGER NOT NULL, number INTEGER NOT NULL, last INTEGER NOT NULL,
    points INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (series, first, number)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS corrupt_blocks (
    series INTEGER NOT NULL, first INTEGER NOT NULL, number INTEGER NOT NULL, last INTEGER NOT NULL,
    points INTEGER NOT NULL, data BLOB NOT NULL);)";

// Distinguishes the blocks of one metric. `number` orders those that begin at the same time.
struct BlockKey {
  int64_t first = 0;  // milliseconds since 1970
  int64_t number = 0;
};

// Adds samples after those of the same time. Requires: they are sorted by time.
Result<void> merge_points(Connection& connection, int64_t series, std::span<const Sample> samples);

// Writes new blocks. `former`: the key of a removed block that began at the same time or later,
// which is reused. Requires: samples are sorted by time, and no other block is within their times.
Result<void> write_points(Connection& connection, int64_t series, std::span<const Sample> samples,
                          const BlockKey& former = {});

// Removes the blocks from `from` to `to`, both inclusive.
Result<void> remove_blocks(Connection& connection, int64_t series, const BlockKey& from,
                           const BlockKey& to);
Result<void> set_block_aside(Connection& connection, int64_t series, const BlockKey& key,
                             const Error& why);

// Calls `take` for each sample with from <= at < to, in the order of time.
using TakeSample = std::function<Result<void>(const Sample&)>;
Result<void> read_points(Connection& connection, int64_t series, int64_t from, int64_t to,
                         const TakeSample& take);
// Calls `take` with the bytes of each block that may have such samples, until it returns false.
using TakeBlock = std::function<Result<bool>(const BlockKey& key, const std::string& data)>;
Result<void> read_blocks(Connection& connection, int64_t series, int64_t from, int64_t to,
                         const TakeBlock& take);
Result<std::optional<Sample>> last_point(Connection& connection, int64_t series);
Result<bool> has_points(Connection& connection, int64_t series);

}  // namespace trainyard::observe
