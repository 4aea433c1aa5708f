#include "alarms/dashboards.hpp"

#include "base/json.hpp"
#include "os/files.hpp"

namespace trainyard::alarms {
namespace {

using observe::Connection;

constexpr int kDashboardsVersion = 1;

constexpr const char* kDashboardsSchema = R"(
  CREATE TABLE IF NOT EXISTS dashboards (
    name BLOB PRIMARY KEY, body BLOB NOT NULL, tags BLOB NOT NULL, modified INTEGER NOT NULL))";

Result<bool> has(Connection& connection, const std::string& name) {
  auto statement = TRY(connection.prepare("SELECT 1 FROM dashboards WHERE name = ?"));
  return statement.bind_bytes(name).step();
}

}  // namespace

Result<std::unique_ptr<Dashboards>> Dashboards::open(const std::string& directory) {
  TRY(os::make_directories(directory));
  auto database = TRY(observe::Database::open(directory + "/dashboards.sqlite", kDashboardsVersion,
                                              kDashboardsSchema));
  TRY(os::sync_directory(directory));
  return std::unique_ptr<Dashboards>(new Dashboards(std::move(database)));
}

Result<void> Dashboards::put(const std::string& name, const std::string& body, const Tags& tags,
                             Instant now) {
  if (body.size() > kDashboardBytesMax)
    return exhausted("the dashboard is larger than " + std::to_string(kDashboardBytesMax) +
                     " bytes");
  const std::string tags_text = dump(Json(tags));
  return database_->write([&](Connection& connection) -> Result<void> {
    if (!TRY(has(connection, name)) &&
        TRY(connection.integer("SELECT count(*) FROM dashboards")) >= kDashboardsMax)
      return exhausted("the limit of " + std::to_string(kDashboardsMax) +
                       " dashboards is reached; delete a dashboard first");
    auto statement = TRY(connection.prepare(
        "INSERT INTO dashboards VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET body = "
        "?2, modified = ?4"));
    return statement.bind_bytes(name)
        .bind_bytes(body)
        .bind_bytes(tags_text)
        .bind(to_milliseconds(now))
        .run();
  });
}

Result<std::string> Dashboards::body(const std::string& name) {
  std::string body;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare("SELECT body FROM dashboards WHERE name = ?"));
    if (!TRY(statement.bind_bytes(name).step())) return not_found(name);
    body = statement.bytes(0);
    return ok();
  }));
  return body;
}

Result<std::vector<DashboardSummary>> Dashboards::list(const std::string& prefix,
                                                       const std::string& after,
                                                       int64_t count_max) {
  std::vector<DashboardSummary> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare(
        "SELECT name, modified, length(body) FROM dashboards WHERE name > ?1 AND "
        "substr(name, 1, length(?2)) = ?2 ORDER BY name LIMIT ?3"));
    statement.bind_bytes(after).bind_bytes(prefix).bind(count_max);
    while (TRY(statement.step()))
      found.push_back(
          {statement.bytes(0), from_milliseconds(statement.integer(1)), statement.integer(2)});
    return ok();
  }));
  return found;
}

Result<void> Dashboards::remove(const std::vector<std::string>& names) {
  return database_->write([&](Connection& connection) -> Result<void> {
    for (const std::string& name : names) {
      if (!TRY(has(connection, name))) return not_found(name);
      auto statement = TRY(connection.prepare("DELETE FROM dashboards WHERE name = ?"));
      TRY(statement.bind_bytes(name).run());
    }
    return ok();
  });
}

Result<Tags> Dashboards::tags(const std::string& name) {
  Tags tags;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto statement = TRY(connection.prepare("SELECT tags FROM dashboards WHERE name = ?"));
    if (!TRY(statement.bind_bytes(name).step())) return not_found(name);
    const Json json = TRY(parse_json(statement.bytes(0)));
    for (const auto& [key, value] : json.items())
      if (value.is_string()) tags[key] = value.get<std::string>();
    return ok();
  }));
  return tags;
}

Result<void> Dashboards::set_tags(const std::string& name, const Tags& tags) {
  const std::string text = dump(Json(tags));
  return database_->write([&](Connection& connection) -> Result<void> {
    if (!TRY(has(connection, name))) return not_found(name);
    auto statement = TRY(connection.prepare("UPDATE dashboards SET tags = ? WHERE name = ?"));
    return statement.bind_bytes(text).bind_bytes(name).run();
  });
}

}  // namespace trainyard::alarms
