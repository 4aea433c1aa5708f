#include "observe/points/block_table.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "observe/points/point_block.hpp"

namespace trainyard::observe {
namespace {

// A block of this length is not extended: it would be read and written again for few points.
constexpr int64_t kFullBlockBytes = kPointBlockBytesMax * 9 / 10;

struct StoredBlock {
  BlockKey key;
  int64_t last = 0;
  int64_t points = 0;
  std::string data;
};

StoredBlock block_in(const Statement& statement) {
  return {.key = {statement.integer(0), statement.integer(1)},
          .last = statement.integer(2),
          .points = statement.integer(3),
          .data = statement.bytes(4)};
}

bool is_full(const StoredBlock& block) {
  return int64_t(block.data.size()) >= kFullBlockBytes ||
         block.points >= int64_t(kPointBlockPointsMax);
}

// Returns the last block that begins at `at` or before.
Result<std::optional<StoredBlock>> block_at(Connection& connection, int64_t series, int64_t at) {
  auto statement = TRY(
      connection.prepare("SELECT first, number, last, points, data FROM blocks WHERE series = ? "
                         "AND first <= ? ORDER BY first DESC, number DESC LIMIT 1"));
  if (!TRY(statement.bind(series).bind(at).step())) return std::optional<StoredBlock>();
  return std::optional(block_in(statement));
}

Result<std::optional<StoredBlock>> first_block(Connection& connection, int64_t series) {
  auto statement =
      TRY(connection.prepare("SELECT first, number, last, points, data FROM blocks WHERE series = "
                             "? ORDER BY first, number LIMIT 1"));
  if (!TRY(statement.bind(series).step())) return std::optional<StoredBlock>();
  return std::optional(block_in(statement));
}

// Returns the first of `samples` that is not before the next block that begins after `at`.
Result<size_t> count_before_next(Connection& connection, int64_t series, int64_t at,
                                 std::span<const Sample> samples) {
  auto statement = TRY(connection.prepare(
      "SELECT first FROM blocks WHERE series = ? AND first > ? ORDER BY first LIMIT 1"));
  if (!TRY(statement.bind(series).bind(at).step())) return samples.size();
  const Instant next = from_milliseconds(statement.integer(0));
  return size_t(std::ranges::lower_bound(samples, next, {}, &Sample::at) - samples.begin());
}

// Finds the longest block that begins with `samples` and does not end within the points of one
// time, unless all of it has that time.
EncodedPoints encode_whole_times(std::span<const Sample> samples) {
  EncodedPoints block = encode_point_block(samples);
  if (block.count == samples.size() || samples[block.count].at != samples[block.count - 1].at)
    return block;
  const Instant cut = samples[block.count].at;
  const auto whole = size_t(
      std::ranges::lower_bound(samples.first(block.count), cut, {}, &Sample::at) - samples.begin());
  return whole == 0 ? block : encode_point_block(samples.first(whole));
}

Result<void> write_block(Connection& connection, int64_t series, const BlockKey& key, int64_t last,
                         const EncodedPoints& block) {
  auto statement = TRY(connection.prepare("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)"));
  return statement.bind(series)
      .bind(key.first)
      .bind(key.number)
      .bind(last)
      .bind(int64_t(block.count))
      .bind_bytes(block.bytes)
      .run();
}

// Merges samples into a block that exists: all of them belong before the next block.
Result<void> extend_block(Connection& connection, int64_t series, const StoredBlock& block,
                          std::span<const Sample> samples) {
  auto present = decode_point_block(block.data);
  if (!present) {
    TRY(set_block_aside(connection, series, block.key, present.error()));
    return merge_points(connection, series, samples);
  }
  TRY(remove_blocks(connection, series, block.key, block.key));
  std::vector<Sample> merged;
  merged.reserve(present->size() + samples.size());
  std::ranges::merge(*present, samples, std::back_inserter(merged), {}, &Sample::at, &Sample::at);
  return write_points(connection, series, merged, block.key);
}

}  // namespace

Result<void> merge_points(Connection& connection, int64_t series, std::span<const Sample> samples) {
  while (!samples.empty()) {
    const int64_t at = to_milliseconds(samples[0].at);
    auto block = TRY(block_at(connection, series, at));
    size_t count = samples.size();
    if (block) {
      count = TRY(count_before_next(connection, series, at, samples));
    } else if ((block = TRY(first_block(connection, series)))) {
      const Instant begin = from_milliseconds(block->key.first);
      count = size_t(std::ranges::lower_bound(samples, begin, {}, &Sample::at) - samples.begin());
    }
    const auto part = samples.first(count);
    if (!block || (is_full(*block) && at > block->last))
      TRY(write_points(connection, series, part));
    else
      TRY(extend_block(connection, series, *block, part));
    samples = samples.subspan(count);
  }
  return ok();
}

Result<void> write_points(Connection& connection, int64_t series, std::span<const Sample> samples,
                          const BlockKey& former) {
  BlockKey next = former;
  while (!samples.empty()) {
    const EncodedPoints block = encode_whole_times(samples);
    const int64_t first = to_milliseconds(samples[0].at);
    const int64_t last = to_milliseconds(samples[block.count - 1].at);
    const BlockKey key{first, first == next.first ? next.number : 0};
    TRY(write_block(connection, series, key, last, block));
    // A following block of the same time, if all of this one has that time.
    if (first == last) next = {first, key.number + 1};
    samples = samples.subspan(block.count);
  }
  return ok();
}

Result<void> remove_blocks(Connection& connection, int64_t series, const BlockKey& from,
                           const BlockKey& to) {
  auto statement = TRY(
      connection.prepare("DELETE FROM blocks WHERE series = ? AND (first, number) >= (?, ?) AND "
                         "(first, number) <= (?, ?)"));
  return statement.bind(series)
      .bind(from.first)
      .bind(from.number)
      .bind(to.first)
      .bind(to.number)
      .run();
}

Result<void> set_block_aside(Connection& connection, int64_t series, const BlockKey& key,
                             const Error& why) {
  log(Level::error, "observe", "moved a corrupt block of points to corrupt_blocks",
      {{"why", why.message},
       {"series", std::to_string(series)},
       {"first", std::to_string(key.first)}});
  {
    auto statement =
        TRY(connection.prepare("INSERT INTO corrupt_blocks SELECT series, first, number, last, "
                               "points, data FROM blocks WHERE series = ? AND first = ? AND "
                               "number = ?"));
    TRY(statement.bind(series).bind(key.first).bind(key.number).run());
  }
  return remove_blocks(connection, series, key, key);
}

Result<void> read_blocks(Connection& connection, int64_t series, int64_t from, int64_t to,
                         const TakeBlock& take) {
  // Among the blocks that begin before `from`, only those with the latest beginning reach it.
  auto statement = TRY(connection.prepare(
      "SELECT first, number, data FROM blocks WHERE series = ?1 AND first >= coalesce((SELECT "
      "max(first) FROM blocks WHERE series = ?1 AND first < ?2), ?2) AND first < ?3 ORDER BY "
      "first, number"));
  statement.bind(series).bind(from).bind(to);
  while (TRY(statement.step()))
    if (!TRY(take({statement.integer(0), statement.integer(1)}, statement.bytes(2)))) break;
  return ok();
}

Result<void> read_points(Connection& connection, int64_t series, int64_t from, int64_t to,
                         const TakeSample& take) {
  return read_blocks(connection, series, from, to,
                     [&](const BlockKey&, const std::string& data) -> Result<bool> {
                       const auto samples = TRY(decode_point_block(data));
                       for (const Sample& sample : samples) {
                         const int64_t at = to_milliseconds(sample.at);
                         if (at >= from && at < to) TRY(take(sample));
                       }
                       return true;
                     });
}

Result<std::optional<Sample>> last_point(Connection& connection, int64_t series) {
  const auto block = TRY(block_at(connection, series, INT64_MAX));
  if (!block) return std::optional<Sample>();
  return std::optional(TRY(decode_point_block(block->data)).back());
}

Result<bool> has_points(Connection& connection, int64_t series) {
  auto statement = TRY(connection.prepare("SELECT 1 FROM blocks WHERE series = ? LIMIT 1"));
  return statement.bind(series).step();
}

}  // namespace trainyard::observe
