#include "observe/points/retention.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "observe/points/block_table.hpp"
#include "observe/points/periods.hpp"
#include "observe/points/point_block.hpp"

namespace trainyard::observe {
namespace {

using DamagedBlocks = std::vector<std::pair<BlockKey, Error>>;

// Joins the points of consecutive blocks in [begin, end) to one per `step` and unit, and keeps
// those outside. After `blocks` it ends with the period that it has begun.
class RangeJoiner {
 public:
  RangeJoiner(int64_t begin, int64_t end, int64_t step, size_t blocks)
      : begin_(begin), end_(end), step_(step), blocks_(blocks), joined_(begin, step) {}

  // False: this was the last block.
  Result<bool> take(const BlockKey& key, const std::string& data) {
    const auto samples = decode_point_block(data);
    if (!samples) {
      damaged_.emplace_back(key, samples.error());
      return true;
    }
    if (!first_) first_ = key;
    last_ = key;
    ++read_;
    for (const Sample& sample : *samples) take(sample);
    return !ended_;
  }

  size_t blocks_read() const { return read_; }
  // The end of the part that was joined.
  int64_t end() const { return end_; }

  Result<void> write(Connection& connection, int64_t series) {
    for (const auto& [key, why] : damaged_) TRY(set_block_aside(connection, series, key, why));
    if (!period_) return ok();  // there was nothing to join
    TRY(remove_blocks(connection, series, *first_, last_));
    std::vector<Sample> samples = std::move(before_);
    for (Datapoint& point : joined_.finish())
      samples.push_back({.at = point.at,
                         .count = point.count,
                         .sum = point.sum,
                         .minimum = point.minimum,
                         .maximum = point.maximum,
                         .unit = std::move(point.unit)});
    std::ranges::move(after_, std::back_inserter(samples));
    return write_points(connection, series, samples, *first_);
  }

 private:
  void take(const Sample& sample) {
    const int64_t at = to_milliseconds(sample.at);
    if (at < begin_) {
      before_.push_back(sample);
      return;
    }
    if (at < end_) {
      const int64_t period = period_start(at, begin_, step_);
      if (read_ > blocks_ && period_ && period != *period_) {
        end_ = period;
        ended_ = true;
      } else {
        period_ = period;
        joined_.add(sample);
        return;
      }
    }
    after_.push_back(sample);
  }

  const int64_t begin_;
  int64_t end_;
  const int64_t step_;
  const size_t blocks_;
  PeriodJoiner joined_;
  std::vector<Sample> before_, after_;
  std::optional<int64_t> period_;  // that has the last joined point
  bool ended_ = false;
  std::optional<BlockKey> first_;
  BlockKey last_;
  size_t read_ = 0;
  DamagedBlocks damaged_;
};

struct RetentionStep {
  const char* select;  // reads the end of the part that was joined before
  const char* update;
  Duration period;
};
constexpr RetentionStep kFiveMinutes{"SELECT five_minutes_to FROM series WHERE id = ?",
                                     "UPDATE series SET five_minutes_to = ? WHERE id = ?", 5min};
constexpr RetentionStep kHours{"SELECT hours_to FROM series WHERE id = ?",
                               "UPDATE series SET hours_to = ? WHERE id = ?", 1h};

// Returns true if all points before `to` are joined.
Result<bool> join_points(Connection& connection, int64_t series, const RetentionStep& step,
                         Instant to, size_t& blocks) {
  const int64_t period = step.period.count();
  const int64_t end = to_milliseconds(to) / period * period;
  int64_t begin;
  {
    auto statement = TRY(connection.prepare(step.select));
    if (!TRY(statement.bind(series).step())) return true;
    begin = statement.integer(0);
  }
  if (begin >= end) return true;
  RangeJoiner joiner(begin, end, period, blocks);
  TRY(read_blocks(
      connection, series, begin, end,
      [&](const BlockKey& key, const std::string& data) { return joiner.take(key, data); }));
  TRY(joiner.write(connection, series));
  blocks -= std::min(blocks, joiner.blocks_read());
  auto statement = TRY(connection.prepare(step.update));
  TRY(statement.bind(joiner.end()).bind(series).run());
  return joiner.end() == end;
}

Result<void> remove_points(Connection& connection, int64_t series, int64_t before) {
  {
    auto statement =
        TRY(connection.prepare("DELETE FROM blocks WHERE series = ? AND first < ?2 AND last < ?2"));
    TRY(statement.bind(series).bind(before).run());
  }
  std::optional<BlockKey> key;
  std::string data;
  {
    auto statement = TRY(connection.prepare(
        "SELECT first, number, data FROM blocks WHERE series = ? AND first < ? LIMIT 1"));
    if (!TRY(statement.bind(series).bind(before).step())) return ok();
    key = BlockKey{statement.integer(0), statement.integer(1)};
    data = statement.bytes(2);
  }
  auto samples = decode_point_block(data);
  if (!samples) return set_block_aside(connection, series, *key, samples.error());
  std::erase_if(*samples,
                [&](const Sample& sample) { return to_milliseconds(sample.at) < before; });
  TRY(remove_blocks(connection, series, *key, *key));
  return write_points(connection, series, *samples, *key);
}

}  // namespace

Result<bool> retire_points(Connection& connection, int64_t series, Instant now,
                           const MetricSettings& settings, size_t& blocks) {
  --blocks;
  if (!TRY(join_points(connection, series, kFiveMinutes, now - settings.raw_time, blocks)))
    return false;
  if (!TRY(join_points(connection, series, kHours, now - settings.five_minutes_time, blocks)))
    return false;
  TRY(remove_points(connection, series, to_milliseconds(now - settings.hours_time)));
  return true;
}

}  // namespace trainyard::observe
