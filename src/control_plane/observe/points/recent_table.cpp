#include "observe/points/recent_table.hpp"

#include <utility>
#include <vector>

#include "base/log.hpp"
#include "observe/points/block_table.hpp"
#include "observe/points/point_batch.hpp"

namespace trainyard::observe {
namespace {

constexpr size_t kSealedAtOnce = 4096;  // points of one metric, in memory as samples

Result<void> set_recent_aside(Connection& connection, int64_t id, const Error& why) {
  log(Level::error, "observe", "moved a corrupt batch of recent points to corrupt_recent",
      {{"why", why.message}, {"row", std::to_string(id)}});
  {
    auto statement = TRY(
        connection.prepare("INSERT INTO corrupt_recent SELECT id, data FROM recent WHERE id = ?"));
    TRY(statement.bind(id).run());
  }
  auto statement = TRY(connection.prepare("DELETE FROM recent WHERE id = ?"));
  return statement.bind(id).run();
}

}  // namespace

Result<void> add_recent(Connection& connection, const std::string& batch) {
  auto statement = TRY(connection.prepare("INSERT INTO recent (data) VALUES (?)"));
  return statement.bind_bytes(batch).run();
}

Result<size_t> load_recent(Connection& connection, PointHead& head) {
  std::vector<std::pair<int64_t, Error>> faults;
  {
    auto statement = TRY(connection.prepare("SELECT id, data FROM recent ORDER BY id"));
    while (TRY(statement.step())) {
      const std::string batch = statement.bytes(1);
      // Decoded as a whole first: no point of a corrupt batch is taken.
      auto decoded = decode_point_batch(batch, [](int64_t, const Sample&) {});
      if (decoded)
        decoded = decode_point_batch(
            batch, [&](int64_t series, const Sample& sample) { head.add(series, sample); });
      if (!decoded) faults.emplace_back(statement.integer(0), decoded.error());
    }
  }
  for (const auto& [id, why] : faults) TRY(set_recent_aside(connection, id, why));
  return faults.size();
}

Result<int64_t> number_of_seals(Connection& connection) {
  auto statement = TRY(connection.prepare("SELECT number FROM seals"));
  if (!TRY(statement.step())) return corrupt("the table seals has no row");
  return statement.integer(0);
}

Result<int64_t> seal_recent(Connection& connection) {
  PointHead head;
  const size_t set_aside = TRY(load_recent(connection, head));
  if (head.size() == 0 && set_aside == 0) return number_of_seals(connection);
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
