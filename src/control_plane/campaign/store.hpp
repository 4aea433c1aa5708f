// CampaignStore keeps campaigns durably, with their definitions and rows, in one SQLite file. Every
// change is written before it takes effect.
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
  // Random; its jobs have it as a tag. "": the campaign was stored before campaigns had an id, and
  // its jobs are identified by name alone.
  std::string id = {};
  Principal started_by = {};
  std::string stop_reason = {};  // the denied permission; "": stopped by a request

  bool over() const;
};

class CampaignStore {
 public:
  static Result<std::unique_ptr<CampaignStore>> open(const std::string& path);
  ~CampaignStore();

  Result<void> create(const Campaign& campaign);
  // Stores rows by number, of an existing campaign; new ones are added.
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
