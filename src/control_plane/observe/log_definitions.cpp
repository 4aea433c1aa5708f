#include "observe/log_definitions.hpp"

#include "observe/catalogue.hpp"
#include "observe/database.hpp"
#include "observe/logs.hpp"

namespace trainyard::observe {
namespace {

Result<bool> has_group(Connection& connection, const std::string& region,
                       const std::string& group) {
  auto statement = TRY(connection.prepare("SELECT 1 FROM groups WHERE region = ? AND name = ?"));
  return statement.bind_bytes(region).bind_bytes(group).step();
}

LogDefinition definition_at(const Statement& statement) {
  return {statement.bytes(0), statement.bytes(1), statement.bytes(2),
          from_milliseconds(statement.integer(3))};
}

Result<bool> has_definition(Connection& connection, const std::string& region, DefinitionKind kind,
                            const LogDefinition& definition) {
  auto statement = TRY(connection.prepare(
      "SELECT 1 FROM definitions WHERE region = ? AND kind = ? AND group_name = ? AND name = ?"));
  return statement.bind_bytes(region)
      .bind(int64_t(kind))
      .bind_bytes(definition.group)
      .bind_bytes(definition.name)
      .step();
}

Result<uint64_t> count_of(Connection& connection, const std::string& region, DefinitionKind kind,
                          const std::string& group) {
  auto statement = TRY(connection.prepare(
      "SELECT count(*) FROM definitions WHERE region = ? AND kind = ? AND group_name = ?"));
  TRY(statement.bind_bytes(region).bind(int64_t(kind)).bind_bytes(group).step());
  return uint64_t(statement.integer(0));
}

class DefinitionTable final : public LogDefinitions {
 public:
  explicit DefinitionTable(Database& database) : database_(database) {}

  Result<void> put(const std::string& region, DefinitionKind kind, const LogDefinition& definition,
                   size_t count_max) override {
    return database_.write([&](Connection& connection) -> Result<void> {
      if (!definition.group.empty() && !TRY(has_group(connection, region, definition.group)))
        return no_group(definition.group);
      // Counting reads each row of the group, so a replacement does without it.
      if (!TRY(has_definition(connection, region, kind, definition)) &&
          TRY(count_of(connection, region, kind, definition.group)) >= count_max)
        return exhausted("Resource limit exceeded.");
      auto statement =
          TRY(connection.prepare("INSERT OR REPLACE INTO definitions VALUES (?, ?, ?, ?, ?, ?)"));
      return statement.bind_bytes(region)
          .bind(int64_t(kind))
          .bind_bytes(definition.group)
          .bind_bytes(definition.name)
          .bind_bytes(definition.body)
          .bind(to_milliseconds(definition.changed))
          .run();
    });
  }

  Result<void> remove(const std::string& region, DefinitionKind kind, const std::string& group,
                      const std::string& name) override {
    return database_.write([&](Connection& connection) -> Result<void> {
      if (!group.empty() && !TRY(has_group(connection, region, group))) return no_group(group);
      auto statement = TRY(connection.prepare(
          "DELETE FROM definitions WHERE region = ? AND kind = ? AND group_name = ? AND name = ?"));
      TRY(statement.bind_bytes(region)
              .bind(int64_t(kind))
              .bind_bytes(group)
              .bind_bytes(name)
              .run());
      if (connection.changes() == 0) return not_found("unknown definition '" + name + "'");
      return ok();
    });
  }

  Result<void> remove_all(const std::string& region, DefinitionKind kind,
                          const std::string& prefix) override {
    return database_.write([&](Connection& connection) -> Result<void> {
      auto statement = TRY(connection.prepare(
          "DELETE FROM definitions WHERE region = ? AND kind = ? AND substr(name, 1, ?) = ?"));
      return statement.bind_bytes(region)
          .bind(int64_t(kind))
          .bind(int64_t(prefix.size()))
          .bind_bytes(prefix)
          .run();
    });
  }

  Result<std::optional<LogDefinition>> find(const std::string& region, DefinitionKind kind,
                                            const std::string& group,
                                            const std::string& name) override {
    std::optional<LogDefinition> found;
    TRY(database_.read([&](Connection& connection) -> Result<void> {
      auto statement = TRY(connection.prepare(
          "SELECT group_name, name, body, changed FROM definitions WHERE region = ? AND kind = ? "
          "AND group_name = ? AND name = ?"));
      statement.bind_bytes(region).bind(int64_t(kind)).bind_bytes(group).bind_bytes(name);
      if (TRY(statement.step())) found = definition_at(statement);
      return ok();
    }));
    return found;
  }

  Result<std::vector<LogDefinition>> list(const std::string& region, DefinitionKind kind,
                                          const std::optional<std::string>& group) override {
    std::vector<LogDefinition> found;
    TRY(database_.read([&](Connection& connection) -> Result<void> {
      if (group && !group->empty() && !TRY(has_group(connection, region, *group)))
        return no_group(*group);
      auto statement = TRY(connection.prepare(
          group ? "SELECT group_name, name, body, changed FROM definitions WHERE region = ? AND "
                  "kind = ? AND group_name = ? ORDER BY group_name, name"
                : "SELECT group_name, name, body, changed FROM definitions WHERE region = ? AND "
                  "kind = ? ORDER BY group_name, name"));
      statement.bind_bytes(region).bind(int64_t(kind));
      if (group) statement.bind_bytes(*group);
      while (TRY(statement.step())) found.push_back(definition_at(statement));
      return ok();
    }));
    return found;
  }

  Result<std::vector<std::pair<std::string, LogDefinition>>> all(DefinitionKind kind) override {
    std::vector<std::pair<std::string, LogDefinition>> found;
    TRY(database_.read([&](Connection& connection) -> Result<void> {
      auto statement = TRY(connection.prepare(
          "SELECT group_name, name, body, changed, region FROM definitions WHERE kind = ? "
          "ORDER BY region, group_name, name"));
      statement.bind(int64_t(kind));
      while (TRY(statement.step()))
        found.emplace_back(statement.bytes(4), definition_at(statement));
      return ok();
    }));
    return found;
  }

 private:
  Database& database_;
};

}  // namespace

std::unique_ptr<LogDefinitions> make_log_definitions(Database& database) {
  return std::make_unique<DefinitionTable>(database);
}

}  // namespace trainyard::observe
