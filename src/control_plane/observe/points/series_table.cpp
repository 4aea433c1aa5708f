#include "observe/points/series_table.hpp"

#include <utility>

#include "base/json.hpp"
#include "observe/bytes.hpp"

namespace trainyard::observe {
namespace {

// Equal dimensions have equal bytes, since the map is ordered.
std::string bytes_of_dimensions(const std::map<std::string, std::string>& dimensions) {
  Json pairs = Json::array();
  for (const auto& [name, value] : dimensions) pairs.push_back({name, value});
  return dump(pairs);
}

Result<std::map<std::string, std::string>> to_dimensions(const std::string& bytes) {
  const auto pairs = TRY(parse_json(bytes));
  std::map<std::string, std::string> dimensions;
  for (const auto& pair : pairs) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
      return corrupt("dimensions of a metric: " + dump(pair));
    dimensions.emplace(pair[0].get<std::string>(), pair[1].get<std::string>());
  }
  return dimensions;
}

// Counts a new series of a group. Errors: exhausted.
Result<void> join_group(Connection& connection, const std::string& group, int64_t series_max) {
  {
    auto statement = TRY(connection.prepare("SELECT series FROM series_groups WHERE name = ?"));
    if (TRY(statement.bind_bytes(group).step()) && statement.integer(0) >= series_max)
      return exhausted("more than " + std::to_string(series_max) + " metrics of " + group,
                       MetricFault::too_many_series);
  }
  auto statement = TRY(connection.prepare(
      "INSERT INTO series_groups VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET series = series + "
      "1"));
  return statement.bind_bytes(group).run();
}

Result<void> leave_group(Connection& connection, int64_t series, const MetricSettings& settings) {
  if (!settings.group_of) return ok();
  const auto key = key_of_series(connection, series);
  if (!key) return key.error().kind == Kind::not_found ? ok() : Result<void>(key.error());
  const std::string group = settings.group_of(*key);
  {
    auto statement =
        TRY(connection.prepare("UPDATE series_groups SET series = series - 1 WHERE name = ?"));
    TRY(statement.bind_bytes(group).run());
  }
  auto statement =
      TRY(connection.prepare("DELETE FROM series_groups WHERE name = ? AND series <= 0"));
  return statement.bind_bytes(group).run();
}

// Equal keys have equal bytes, and others have others.
void bytes_of_key(const MetricKey& key, std::string& bytes) {
  bytes.clear();
  const auto add = [&](const std::string& text) {
    put(bytes, uint32_t(text.size()));
    bytes += text;
  };
  add(key.region);
  add(key.name_space);
  add(key.name);
  for (const auto& [name, value] : key.dimensions) {
    add(name);
    add(value);
  }
}

}  // namespace

Result<int64_t> find_series(Connection& connection, const MetricKey& key) {
  const std::string dimensions = bytes_of_dimensions(key.dimensions);
  auto statement = TRY(connection.prepare(
      "SELECT id FROM series WHERE region = ? AND name_space = ? AND name = ? AND dimensions = ?"));
  if (!TRY(statement.bind_bytes(key.region)
               .bind_bytes(key.name_space)
               .bind_bytes(key.name)
               .bind_bytes(dimensions)
               .step()))
    return 0;
  return statement.integer(0);
}

Result<MetricKey> key_of_series(Connection& connection, int64_t series) {
  auto statement = TRY(
      connection.prepare("SELECT region, name_space, name, dimensions FROM series WHERE id = ?"));
  if (!TRY(statement.bind(series).step())) return not_found("a metric that was removed");
  MetricKey key;
  key.region = statement.bytes(0);
  key.name_space = statement.bytes(1);
  key.name = statement.bytes(2);
  key.dimensions = TRY(to_dimensions(statement.bytes(3)));
  return key;
}

Result<std::vector<int64_t>> all_series(Connection& connection) {
  std::vector<int64_t> all;
  auto statement = TRY(connection.prepare("SELECT id FROM series"));
  while (TRY(statement.step())) all.push_back(statement.integer(0));
  return all;
}

Result<std::vector<MetricKey>> list_series(Connection& connection, const std::string& region,
                                           const std::string& name_space, const std::string& name) {
  std::vector<MetricKey> keys;
  auto statement = TRY(connection.prepare(
      "SELECT name_space, name, dimensions FROM series WHERE region = ?1 AND (?2 "
      "= x'' OR name_space = ?2) AND (?3 = x'' OR name = ?3) "
      "ORDER BY name_space, name, dimensions"));
  statement.bind_bytes(region).bind_bytes(name_space).bind_bytes(name);
  while (TRY(statement.step())) {
    auto dimensions = TRY(to_dimensions(statement.bytes(2)));
    keys.push_back({region, statement.bytes(0), statement.bytes(1), std::move(dimensions)});
  }
  return keys;
}

Result<void> remove_series(Connection& connection, int64_t series, const MetricSettings& settings) {
  TRY(leave_group(connection, series, settings));
  {
    auto statement =
        TRY(connection.prepare("UPDATE last_removed_series SET series = max(series, ?)"));
    TRY(statement.bind(series).run());
  }
  auto statement = TRY(connection.prepare("DELETE FROM series WHERE id = ?"));
  return statement.bind(series).run();
}

Result<SeriesIds::Ensured> SeriesIds::ensure(Connection& connection, const MetricKey& key) {
  bytes_of_key(key, bytes_);
  const auto cached = ids_.find(bytes_);
  if (cached != ids_.end()) return Ensured{cached->second, true};
  int64_t id = TRY(find_series(connection, key));
  if (id == 0) id = TRY(insert(connection, key));
  return Ensured{id, false};
}

Result<int64_t> SeriesIds::insert(Connection& connection, const MetricKey& key) {
  if (settings_.group_of)
    if (const std::string group = settings_.group_of(key); !group.empty())
      TRY(join_group(connection, group, settings_.group_series_max));
  const std::string dimensions = bytes_of_dimensions(key.dimensions);
  auto statement = TRY(connection.prepare(
      "INSERT INTO series (id, region, name_space, name, dimensions) SELECT 1 + max(series, "
      "(SELECT coalesce(max(id), 0) FROM series)), ?, ?, ?, ? FROM last_removed_series"));
  TRY(statement.bind_bytes(key.region)
          .bind_bytes(key.name_space)
          .bind_bytes(key.name)
          .bind_bytes(dimensions)
          .run());
  return connection.last_row();
}

void SeriesIds::remember(const MetricKey& key, int64_t id) {
  if (ids_.size() >= kCachedMax) ids_.clear();
  bytes_of_key(key, bytes_);
  ids_.emplace(bytes_, id);
}

}  // namespace trainyard::observe
