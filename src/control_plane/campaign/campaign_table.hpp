// Holds the campaigns in memory, as they are stored, for all threads of the module.
//
// A change is durable before it is visible. Rows that are over do not change.
//
// Threads: callable from anywhere (guarded inside). Errors: those of the store; not_found.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "campaign/campaigns.hpp"

namespace trainyard::campaign {

// The rows of one campaign in one region that are not over.
struct Work {
  Definition definition;
  std::string id;  // of the campaign
  Principal started_by;
  bool stopping = false;
  std::string stop_reason;
  std::vector<Row> rows;
};

class CampaignTable {
 public:
  explicit CampaignTable(CampaignStore& store) : store_(store) {}
  Result<void> load();

  Result<void> add(Campaign campaign, size_t live_max);
  Result<Campaign> find(const std::string& name) const;
  std::vector<Campaign> list() const;  // the newest first
  // A stopped campaign stays as it is. `reason`: "" for a requested stop.
  Result<void> stop(const std::string& name, Instant now, const std::string& reason);
  std::vector<Work> work_of(const std::string& region) const;
  std::set<std::string> busy_regions() const;
  bool watches(const std::string& bucket, const std::string& key) const;
  // Stores rows as they were decided from `before`; rows that have changed meanwhile are left out.
  // Returns the numbers of the stored rows.
  Result<std::set<int64_t>> put(const std::string& campaign,
                                const std::vector<std::pair<RowState, Row>>& rows);
  // Changes one row, unless it is over. `durably` false: only in memory, for progress that can be
  // determined again.
  Result<void> change(const std::string& campaign, int64_t number, bool durably,
                      const std::function<void(Row&)>& change);
  // Changes one row, unless it is over, and stops its campaign for it. No reader sees the one
  // without the other: rows that are all over would mean that the campaign failed.
  Result<void> change_and_stop(const std::string& campaign, int64_t number, Instant now,
                               const std::string& reason, const std::function<void(Row&)>& change);
  Result<void> add_rows(const std::string& campaign, std::vector<Row> rows);

  void note_region(const std::string& region, const std::optional<Error>& fault, Instant now);
  std::map<std::string, RegionState> regions() const;
  void set_last_error(const std::string& campaign, const std::string& last_error);
  std::string last_error(const std::string& campaign) const;

  // -- waking: each waiter has a name
  void wake(const std::string& waiter);
  void end();
  // Waits until woken, or for `longest`; returns false once the campaigns have ended.
  bool wait(const std::string& waiter, Duration longest);
  bool ended() const;

 private:
  Campaign* find_locked(const std::string& name) REQUIRES(mutex_);
  Result<void> stop_locked(Campaign& campaign, Instant now, const std::string& reason)
      REQUIRES(mutex_);
  Result<void> change_locked(Campaign& campaign, int64_t number, bool durably,
                             const std::function<void(Row&)>& change) REQUIRES(mutex_);

  CampaignStore& store_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::map<std::string, Campaign> campaigns_ GUARDED_BY(mutex_);
  std::map<std::string, RegionState> regions_ GUARDED_BY(mutex_);
  std::map<std::string, std::string> last_errors_ GUARDED_BY(mutex_);
  std::set<std::string> woken_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace trainyard::campaign
