// Dashboards stores the texts of dashboards by name. A change is durable when its call returns.
//
// Threads: call from anywhere. Errors: not_found, exhausted (limits, disk full), corrupt.
// Format: docs/formats/alarms.md.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "observe/database.hpp"

namespace trainyard::alarms {

inline constexpr int64_t kDashboardsMax = 500;
inline constexpr size_t kDashboardBytesMax = 1 << 20;

struct DashboardSummary {
  std::string name;
  Instant modified;
  int64_t bytes = 0;
};

using Tags = std::map<std::string, std::string>;

class Dashboards {
 public:
  static Result<std::unique_ptr<Dashboards>> open(const std::string& directory);

  // Creates or replaces a dashboard. `tags` apply to a new dashboard; an existing one keeps its
  // tags.
  Result<void> put(const std::string& name, const std::string& body, const Tags& tags, Instant now);
  Result<std::string> body(const std::string& name);
  // Returns at most `count_max` dashboards that come after the name `after`, sorted by name.
  Result<std::vector<DashboardSummary>> list(const std::string& prefix, const std::string& after,
                                             int64_t count_max);
  // Removes all of these dashboards. If one does not exist, none is removed: not_found, with its
  // name as the message.
  Result<void> remove(const std::vector<std::string>& names);
  Result<Tags> tags(const std::string& name);
  Result<void> set_tags(const std::string& name, const Tags& tags);

 private:
  explicit Dashboards(std::unique_ptr<observe::Database> database)
      : database_(std::move(database)) {}

  const std::unique_ptr<observe::Database> database_;
};

}  // namespace trainyard::alarms
