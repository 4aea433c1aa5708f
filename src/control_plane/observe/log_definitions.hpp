// LogDefinitions stores named texts that belong to a region or to one of its log groups, such as
// metric filters, subscription filters and saved queries. Other modules interpret the texts.
//
// Threads: callable from anywhere. Errors: not_found, exhausted (too many in a group or a region,
// or a full disk), corrupt.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::observe {

class Database;

// The numbers are stored, so they never change.
enum class DefinitionKind : int64_t {
  metric_filter = 1,
  subscription_filter = 2,
  query = 3,
  resource_policy = 4,
  delivery_source = 5,
  delivery_destination = 6,
  delivery = 7,
  destination = 8,
  delivery_position = 9,
  insight_rule = 10,
};

struct LogDefinition {
  std::string group;  // "": the definition belongs to the region
  std::string name;
  std::string body;
  Instant changed = {};
};

class LogDefinitions {
 public:
  virtual ~LogDefinitions() = default;
  // Inserts or replaces a definition. If it belongs to a group, the group must exist. At most
  // `count_max` definitions of the kind may belong to the group, or to the region.
  virtual Result<void> put(const std::string& region, DefinitionKind kind,
                           const LogDefinition& definition, size_t count_max) = 0;
  // Errors: not_found, with the detail LogResource::group if the group does not exist.
  virtual Result<void> remove(const std::string& region, DefinitionKind kind,
                              const std::string& group, const std::string& name) = 0;
  // Removes the definitions in all groups whose names begin with `prefix`.
  virtual Result<void> remove_all(const std::string& region, DefinitionKind kind,
                                  const std::string& prefix) = 0;
  virtual Result<std::optional<LogDefinition>> find(const std::string& region, DefinitionKind kind,
                                                    const std::string& group,
                                                    const std::string& name) = 0;
  // Returns definitions sorted by group and name. Without `group`, returns those of all groups and
  // of the region itself.
  virtual Result<std::vector<LogDefinition>> list(const std::string& region, DefinitionKind kind,
                                                  const std::optional<std::string>& group = {}) = 0;
  // Returns the definitions of all regions, each with its region.
  virtual Result<std::vector<std::pair<std::string, LogDefinition>>> all(DefinitionKind kind) = 0;
};

// Opens the definitions. Their table is part of the catalogue's schema. Lifetime: the database
// outlives the result.
std::unique_ptr<LogDefinitions> make_log_definitions(Database& database);

}  // namespace trainyard::observe
