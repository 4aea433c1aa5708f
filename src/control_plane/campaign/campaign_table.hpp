// CampaignTable holds the stored campaigns in memory, for all threads of the module.
//
// A change is durable before it is visible. Rows that have ended do not change.
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

// The rows of a campaign in one region that have not ended.
struct Work {
  Definition definition;
  std::string id;  // the campaign's
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
  // Does nothing if the campaign is stopped already. `reason`: "" for a requested stop.
  Result<void> stop(const std::string& name, Instant now, const std::string& reason);
  std::vector<Work> work_of(const std::string& region) const;
  std::set<std::string> busy_regions() const;
  bool watches(const std::string& bucket, const std::string& key) const;
  // Stores rows, each with the state that it had when it was decided; skips rows whose state has
  // changed since then. Returns the numbers of the stored rows.
  Result<std::set<int64_t>> put(const std::string& campaign,
                                const std::vector<std::pair<RowState, Row>>& rows);
  // Changes one row, unless it has ended. With `durably` false only in memory, for progress that
  // can be determined again.
  Result<void> change(const std::string& campaign, int64_t number, bool durably,
                      const std::function<void(Row&)>& change);
  // Changes one row, unless it has ended, and stops its campaign, in one step: readers would take a
  // campaign whose rows have all ended, and which is not stopped, for a failed one.
  Result<void> change_and_stop(const std::string& campaign, int64_t number, Instant now,
                               const std::string& reason, const std::function<void(Row&)>& change);
  Result<void> add_rows(const std::string& campaign, std::vector<Row> rows);

  void note_region(const std::string& region, const std::optional<Error>& fault, Instant now);
  std::map<std::string, RegionState> regions() const;
  void set_last_error(const std::string& campaign, const std::string& last_error);
  std::string last_error(const std::string& campaign) const;

  // -- waiting: each waiting thread has a name
  void wake(const std::string& waiter);  // wakes the thread, or ends its next wait at once
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
