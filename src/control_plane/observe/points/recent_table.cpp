#include "observe/points/recent_table.hpp"

#include "observe/points/block_table.hpp"
#include "observe/points/point_batch.hpp"

namespace trainyard::observe {
namespace {

constexpr size_t kSealedAtOnce = 4096;  // points of one metric, in memory as samples

}  // namespace

Result<void> add_recent(Connection& connection, const std::string& batch) {
  auto statement = TRY(connection.prepare("INSERT INTO recent (data) VALUES (?)"));
  return statement.bind_bytes(batch).run();
}

Result<void> load_recent(Connection& connection, PointHead& head) {
  auto statement = TRY(connection.prepare("SELECT data FROM recent ORDER BY id"));
  while (TRY(statement.step()))
    TRY(decode_point_batch(statement.bytes(0), [&](int64_t series, const Sample& sample) {
      head.add(series, sample);
    }));
  return ok();
}

Result<int64_t> number_of_seals(Connection& connection) {
  auto statement = TRY(connection.prepare("SELECT number FROM seals"));
  if (!TRY(statement.step())) return corrupt("the table seals has no row");
  return statement.integer(0);
}

Result<int64_t> seal_recent(Connection& connection) {
  PointHead head;
  TRY(load_recent(connection, head));
  if (head.size() == 0) return number_of_seals(connection);
  for (const int64_t series : head.series())
    for (size_t begin = 0;; begin += kSealedAtOnce) {
      const auto samples = head.slice(series, begin, kSealedAtOnce);
      if (samples.empty()) break;
      TRY(merge_points(connection, series, samples));
    }
  {
    auto statement = TRY(connection.prepare("DELETE FROM recent"));
    TRY(statement.run());
  }
  {
    auto statement = TRY(connection.prepare("UPDATE seals SET number = number + 1"));
    TRY(statement.run());
  }
  return number_of_seals(connection);
}

}  // namespace trainyard::observe
