#include "observe/points/migration.hpp"

#include <cstdint>
#include <vector>

#include "base/log.hpp"
#include "observe/points/block_table.hpp"
#include "observe/points/point_block.hpp"

namespace trainyard::observe {
namespace {

constexpr int64_t kConvertedAtOnce = 50'000;  // points in one transaction, in memory as samples

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

}  // namespace trainyard::observe
