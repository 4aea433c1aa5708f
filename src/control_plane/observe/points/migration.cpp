#include "observe/points/migration.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "observe/points/block_table.hpp"
#include "observe/points/point_block.hpp"
#include "observe/points/recent_table.hpp"

namespace trainyard::observe {
namespace {

constexpr int64_t kConvertedAtOnce = 50'000;  // points in one transaction, in memory as samples
constexpr int64_t kBlocksAtOnce = 100;        // converted back in one transaction

constexpr const char* kFirstSchema = R"(
  CREATE TABLE IF NOT EXISTS points (
    series INTEGER NOT NULL, at INTEGER NOT NULL, sequence INTEGER NOT NULL, unit BLOB NOT NULL,
    count REAL NOT NULL, sum REAL NOT NULL, minimum REAL NOT NULL, maximum REAL NOT NULL,
    PRIMARY KEY (series, at, sequence)) WITHOUT ROWID)";
// Points of the journal would be out of order with those that version 1 appends.
constexpr const char* kEndConversion = R"(
  DROP TABLE blocks; DROP TABLE recent; DROP TABLE seals; DROP TABLE IF EXISTS journal;
  DROP TABLE IF EXISTS journal_readers; PRAGMA user_version = 1)";

struct PointRun {
  int64_t series;
  std::vector<Sample> samples;
};
struct PointPage {
  std::vector<PointRun> runs;
  int64_t series = 0, at = 0, sequence = 0;  // the last point
};

Result<PointPage> read_page(Connection& connection) {
  PointPage page;
  auto statement = TRY(connection.prepare(
      "SELECT series, at, sequence, unit, count, sum, minimum, maximum FROM points "
      "ORDER BY series, at, sequence LIMIT ?"));
  statement.bind(kConvertedAtOnce);
  while (TRY(statement.step())) {
    page.series = statement.integer(0);
    page.at = statement.integer(1);
    page.sequence = statement.integer(2);
    if (page.runs.empty() || page.runs.back().series != page.series)
      page.runs.push_back({page.series, {}});
    page.runs.back().samples.push_back({.at = from_milliseconds(page.at),
                                        .count = statement.real(4),
                                        .sum = statement.real(5),
                                        .minimum = statement.real(6),
                                        .maximum = statement.real(7),
                                        .unit = statement.bytes(3).substr(0, kUnitBytesMax)});
  }
  return page;
}

// Returns false if no point was left.
Result<bool> convert_page(Connection& connection) {
  const PointPage page = TRY(read_page(connection));
  if (page.runs.empty()) return false;
  for (const PointRun& run : page.runs) TRY(merge_points(connection, run.series, run.samples));
  auto statement =
      TRY(connection.prepare("DELETE FROM points WHERE (series, at, sequence) <= (?, ?, ?)"));
  TRY(statement.bind(page.series).bind(page.at).bind(page.sequence).run());
  return true;
}

struct Block {
  int64_t series;
  BlockKey key;
  std::string data;
};

Result<std::vector<Block>> read_first_blocks(Connection& connection) {
  std::vector<Block> blocks;
  auto statement = TRY(connection.prepare(
      "SELECT series, first, number, data FROM blocks ORDER BY series, first, number LIMIT ?"));
  statement.bind(kBlocksAtOnce);
  while (TRY(statement.step()))
    blocks.push_back(
        {statement.integer(0), {statement.integer(1), statement.integer(2)}, statement.bytes(3)});
  return blocks;
}

// Adds a row after those of the same time.
Result<void> add_row(Connection& connection, int64_t series, const Sample& sample) {
  auto statement = TRY(connection.prepare(
      "INSERT INTO points SELECT ?1, ?2, coalesce(max(sequence) + 1, 0), ?3, ?4, ?5, ?6, ?7 "
      "FROM points WHERE series = ?1 AND at = ?2"));
  return statement.bind(series)
      .bind(to_milliseconds(sample.at))
      .bind_bytes(sample.unit)
      .bind(sample.count)
      .bind(sample.sum)
      .bind(sample.minimum)
      .bind(sample.maximum)
      .run();
}

// Returns the number of converted points, or nothing if no block was left.
Result<std::optional<uint64_t>> convert_blocks_back(Connection& connection) {
  const auto blocks = TRY(read_first_blocks(connection));
  if (blocks.empty()) return std::optional<uint64_t>();
  uint64_t points = 0;
  for (const Block& block : blocks) {
    const auto samples = decode_point_block(block.data);
    if (!samples) {
      TRY(set_block_aside(connection, block.series, block.key, samples.error()));
      continue;
    }
    for (const Sample& sample : *samples) TRY(add_row(connection, block.series, sample));
    points += samples->size();
    TRY(remove_blocks(connection, block.series, block.key, block.key));
  }
  return std::optional(points);
}

}  // namespace

Result<void> convert_points(Database& database) {
  bool more = false;
  TRY(database.read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare("SELECT 1 FROM sqlite_master WHERE name = 'points'"));
    more = TRY(statement.step());
    return ok();
  }));
  if (!more) return ok();
  log(Level::info, "observe", "the points of metrics are converted to blocks");
  while (more)
    TRY(database.write([&](Connection& connection) -> Result<void> {
      more = TRY(convert_page(connection));
      return more ? ok() : connection.run("DROP TABLE points");
    }));
  return ok();
}

Result<uint64_t> convert_points_back(Database& database) {
  TRY(database.write([&](Connection& connection) -> Result<void> {
    TRY(seal_recent(connection));
    return connection.run(kFirstSchema);
  }));
  uint64_t points = 0;
  for (bool more = true; more;) {
    uint64_t converted = 0;
    TRY(database.write([&](Connection& connection) -> Result<void> {
      const auto some = TRY(convert_blocks_back(connection));
      more = some.has_value();
      converted = some.value_or(0);
      return more ? ok() : connection.run(kEndConversion);
    }));
    points += converted;
  }
  return points;
}

}  // namespace trainyard::observe
