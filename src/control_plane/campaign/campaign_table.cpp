#include "campaign/campaign_table.hpp"

#include <algorithm>

#include "base/thread_safety.hpp"

namespace trainyard::campaign {

Result<void> CampaignTable::load() {
  auto all = TRY(store_.load());
  const MutexLock lock(mutex_);
  for (auto& campaign : all) {
    const std::string name = campaign.definition.name;
    campaigns_.emplace(name, std::move(campaign));
  }
  return {};
}

Result<void> CampaignTable::add(Campaign campaign, size_t live_max) {
  const MutexLock lock(mutex_);
  const std::string name = campaign.definition.name;
  if (campaigns_.count(name)) return conflict("campaign '" + name + "' already exists");
  const auto live = size_t(std::count_if(campaigns_.begin(), campaigns_.end(),
                                         [](const auto& each) { return !each.second.over(); }));
  if (live >= live_max)
    return exhausted(std::to_string(live) +
                     " campaigns are active, which is the limit: wait until one ends, or stop one");
  TRY(store_.create(campaign));
  campaigns_.emplace(name, std::move(campaign));
  return {};
}

Campaign* CampaignTable::find_locked(const std::string& name) {
  const auto found = campaigns_.find(name);
  return found == campaigns_.end() ? nullptr : &found->second;
}

Result<Campaign> CampaignTable::find(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = campaigns_.find(name);
  if (found == campaigns_.end()) return not_found("campaign '" + name + "' not found");
  return found->second;
}

std::vector<Campaign> CampaignTable::list() const {
  std::vector<Campaign> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, campaign] : campaigns_) all.push_back(campaign);
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.created > b.created; });
  return all;
}

Result<void> CampaignTable::stop(const std::string& name, Instant now, const std::string& reason) {
  const MutexLock lock(mutex_);
  Campaign* campaign = find_locked(name);
  if (!campaign) return not_found("campaign '" + name + "' not found");
  return stop_locked(*campaign, now, reason);
}

Result<void> CampaignTable::stop_locked(Campaign& campaign, Instant now,
                                        const std::string& reason) {
  if (campaign.stopped) return {};
  TRY(store_.put_stopped(campaign.definition.name, now, reason));
  campaign.stopped = now;
  campaign.stop_reason = reason;
  return {};
}

std::vector<Work> CampaignTable::work_of(const std::string& region) const {
  const MutexLock lock(mutex_);
  std::vector<Work> all;
  for (const auto& [name, campaign] : campaigns_) {
    Work work{campaign.definition,          campaign.id,          campaign.started_by,
              campaign.stopped.has_value(), campaign.stop_reason, {}};
    for (const Row& row : campaign.rows)
      if (row.region == region && !row.over()) work.rows.push_back(row);
    if (!work.rows.empty()) all.push_back(std::move(work));
  }
  return all;
}

std::set<std::string> CampaignTable::busy_regions() const {
  const MutexLock lock(mutex_);
  std::set<std::string> regions;
  for (const auto& [name, campaign] : campaigns_)
    for (const Row& row : campaign.rows)
      if (!row.over()) regions.insert(row.region);
  return regions;
}

bool CampaignTable::watches(const std::string& bucket, const std::string& key) const {
  const MutexLock lock(mutex_);
  for (const auto& [name, campaign] : campaigns_)
    if (!campaign.stopped)
      for (const Watch& watch : campaign.definition.watches)
        if (watch.bucket == bucket && key.starts_with(watch.prefix) && key.ends_with(watch.suffix))
          return true;
  return false;
}

Result<std::set<int64_t>> CampaignTable::put(const std::string& campaign,
                                             const std::vector<std::pair<RowState, Row>>& rows) {
  const MutexLock lock(mutex_);
  Campaign* found = find_locked(campaign);
  if (!found) return not_found("campaign '" + campaign + "' not found");
  std::vector<Row> taken;
  std::set<int64_t> numbers;
  for (const auto& [before, row] : rows) {
    const Row& present = found->rows.at(size_t(row.number - 1));
    if (present.state != before || present.over()) continue;
    taken.push_back(row);
    numbers.insert(row.number);
  }
  if (!taken.empty()) TRY(store_.put_rows(campaign, taken));
  for (Row& row : taken) found->rows.at(size_t(row.number - 1)) = std::move(row);
  return numbers;
}

Result<void> CampaignTable::change(const std::string& campaign, int64_t number, bool durably,
                                   const std::function<void(Row&)>& change) {
  const MutexLock lock(mutex_);
  Campaign* found = find_locked(campaign);
  if (!found) return not_found("campaign '" + campaign + "' not found");
  return change_locked(*found, number, durably, change);
}

Result<void> CampaignTable::change_locked(Campaign& campaign, int64_t number, bool durably,
                                          const std::function<void(Row&)>& change) {
  Row row = campaign.rows.at(size_t(number - 1));
  if (row.over()) return cancelled("the row has ended");
  change(row);
  if (durably) TRY(store_.put_rows(campaign.definition.name, {row}));
  campaign.rows.at(size_t(number - 1)) = std::move(row);
  return {};
}

Result<void> CampaignTable::change_and_stop(const std::string& campaign, int64_t number,
                                            Instant now, const std::string& reason,
                                            const std::function<void(Row&)>& change) {
  const MutexLock lock(mutex_);
  Campaign* found = find_locked(campaign);
  if (!found) return not_found("campaign '" + campaign + "' not found");
  if (found->rows.at(size_t(number - 1)).over()) return cancelled("the row has ended");
  // The stop is stored first. If the server is killed in between, it then finds a campaign that is
  // being stopped, and ends its rows, rather than a failed campaign.
  TRY(stop_locked(*found, now, reason));
  return change_locked(*found, number, true, change);
}

Result<void> CampaignTable::add_rows(const std::string& campaign, std::vector<Row> rows) {
  const MutexLock lock(mutex_);
  Campaign* found = find_locked(campaign);
  if (!found) return not_found("campaign '" + campaign + "' not found");
  TRY(store_.put_rows(campaign, rows));
  for (Row& row : rows) found->rows.push_back(std::move(row));
  return {};
}

void CampaignTable::note_region(const std::string& region, const std::optional<Error>& fault,
                                Instant now) {
  const MutexLock lock(mutex_);
  RegionState& state = regions_[region];
  if (!fault) {
    state = {};
    return;
  }
  if (state.answers) state.since = now;
  state.answers = false;
  state.why_not = fault->message;
}

std::map<std::string, RegionState> CampaignTable::regions() const {
  const MutexLock lock(mutex_);
  return regions_;
}

void CampaignTable::set_last_error(const std::string& campaign, const std::string& last_error) {
  const MutexLock lock(mutex_);
  last_errors_[campaign] = last_error;
}

std::string CampaignTable::last_error(const std::string& campaign) const {
  const MutexLock lock(mutex_);
  const auto found = last_errors_.find(campaign);
  return found == last_errors_.end() ? "" : found->second;
}

void CampaignTable::wake(const std::string& waiter) {
  {
    const MutexLock lock(mutex_);
    woken_.insert(waiter);
  }
  changed_.notify_all();
}

void CampaignTable::end() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

bool CampaignTable::wait(const std::string& waiter, Duration longest) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, longest,
                    [&]() REQUIRES(mutex_) { return ended_ || woken_.count(waiter) > 0; });
  woken_.erase(waiter);
  return !ended_;
}

bool CampaignTable::ended() const {
  const MutexLock lock(mutex_);
  return ended_;
}

}  // namespace trainyard::campaign
