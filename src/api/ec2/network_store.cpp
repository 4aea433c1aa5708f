#include "ec2/network_store.hpp"

#include <utility>

#include "base/log.hpp"
#include "ec2/network_records.hpp"
#include "operations/commit_records.hpp"

namespace trainyard::api::ec2 {
namespace {

// Retries of one change after commits by other writers of records.
constexpr int kConflictsMax = 10;
constexpr size_t kIdBytes = 8;  // random, after the "0" with which AWS's ids begin

}  // namespace

NetworkStore::NetworkStore(control::Control& control, Random& random, std::string account)
    : control_(control), random_(random), account_(std::move(account)) {}

std::shared_ptr<const Networks> NetworkStore::snapshot(const std::string& region) const {
  auto records = control_.records();
  {
    const MutexLock lock(mutex_);
    const auto found = by_region_.find(region);
    if (found != by_region_.end() && found->second.records == records)
      return found->second.networks;
  }
  auto networks = join(region, *records);
  const MutexLock lock(mutex_);
  Joined& joined = by_region_[region];
  // Another thread may have joined newer records.
  if (!joined.records || joined.records->version <= records->version)
    joined = {std::move(records), networks};
  return networks;
}

std::shared_ptr<const Networks> NetworkStore::join(const std::string& region,
                                                   const domain::Records& records) const {
  if (!has_region(records, region))
    return std::make_shared<const Networks>(default_networks(account_, region));
  Networks networks;
  for (const auto& [key, record] : records.all) {
    const auto added = add_record(networks, region, key, record->document);
    if (added) continue;
    const MutexLock lock(mutex_);
    if (set_aside_.insert(key).second)
      log(Level::error, "api", "a record of a network resource was set aside",
          {{"record", key.first + "/" + key.second}, {"why", added.error().message}});
  }
  drop_orphans(networks);
  return std::make_shared<const Networks>(std::move(networks));
}

Result<void> NetworkStore::change(
    const std::string& region, const std::function<Result<void>(Networks&, const MakeId&)>& edit) {
  const MutexLock exclusive(changing_);
  const MakeId make_id = [this](std::string_view prefix) {
    return std::string(prefix) + "0" + random_.hex(kIdBytes);
  };
  for (int conflicts = 0;; ++conflicts) {
    const auto records = control_.records();
    const bool stored = has_region(*records, region);
    const auto before = join(region, *records);
    Networks after = *before;
    TRY(edit(after, make_id));
    control::RecordsRequest request;
    request.expected = records->version;
    request.writes = difference(region, stored ? *before : Networks(), after);
    if (!stored) request.writes.push_back(region_record(region));
    if (request.writes.empty() || (!stored && difference(region, *before, after).empty()))
      return {};
    const auto committed = commit_records(control_, std::move(request));
    if (committed) return {};
    if (committed.error().kind != Kind::conflict) return committed.error();
    if (conflicts == kConflictsMax)
      return unavailable("network resources are being changed by others: try again");
  }
}

}  // namespace trainyard::api::ec2
