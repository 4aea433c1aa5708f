// CampaignStore stores campaigns with their definitions and rows durably in one SQLite file.
// Changes are durable when a call returns.
//
// Threads: callable from anywhere. Errors: those of sqlite/connection.hpp; conflict, when a
// campaign of this name exists.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "campaign/definition.hpp"
#include "campaign/principal.hpp"
#include "campaign/row.hpp"

namespace trainyard::sqlite {
class Connection;
}

namespace trainyard::campaign {

struct Campaign {
  Definition definition;
  Instant created;
  std::optional<Instant> stopped;
  std::vector<Row> rows;  // in the order of their numbers
  // A random text, which its jobs have as a tag. "": the campaign was stored before campaigns had
  // ids, and its jobs are identified only by name.
  std::string id = {};
  Principal started_by = {};
  std::string stop_reason = {};  // the denied permission; "": stopped by a request

  bool over() const;  // all rows have ended
};

class CampaignStore {
 public:
  static Result<std::unique_ptr<CampaignStore>> open(const std::string& path);
  ~CampaignStore();

  Result<void> create(const Campaign& campaign);
  // Replaces or adds rows of an existing campaign, by number.
  Result<void> put_rows(const std::string& campaign, const std::vector<Row>& rows);
  // `reason`: "" for a requested stop.
  Result<void> put_stopped(const std::string& campaign, Instant at, const std::string& reason);
  Result<std::vector<Campaign>> load();

 private:
  CampaignStore();
  Mutex mutex_;
  std::unique_ptr<sqlite::Connection> connection_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::campaign
