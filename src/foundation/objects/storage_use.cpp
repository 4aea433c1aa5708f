#include "objects/storage_use.hpp"

#include <algorithm>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::objects {
namespace {

StoredAmount at(const std::map<std::string, StoredAmount>& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? StoredAmount() : found->second;
}

void add_to(StoredAmount& sum, StoredAmount amount) {
  sum.bytes = saturating_add(sum.bytes, amount.bytes);
  sum.objects = saturating_add(sum.objects, amount.objects);
}

void take_from(std::map<std::string, StoredAmount>& sums, const std::string& name,
               StoredAmount amount) {
  const auto found = sums.find(name);
  if (found == sums.end()) return;
  found->second.bytes -= std::min(found->second.bytes, amount.bytes);
  found->second.objects -= std::min(found->second.objects, amount.objects);
  if (found->second.bytes == 0 && found->second.objects == 0) sums.erase(found);
}

Result<void> check(const std::map<std::string, StorageQuota>& quotas, std::string_view kind,
                   const std::string& name, StoredAmount used, StoredAmount more) {
  auto found = quotas.find(name);
  if (found == quotas.end()) found = quotas.find("*");
  if (found == quotas.end()) return ok();
  const auto refused = [&](const std::string& limit, const std::string& use) {
    return exhausted("the storage quota of the " + std::string(kind) + " '" + name + "' is " +
                         limit + ", of which " + use + " are in use",
                     Fault::quota_exceeded);
  };
  const StorageQuota& quota = found->second;
  if (more.bytes > 0 && saturating_add(used.bytes, more.bytes) > quota.bytes)
    return refused(human_bytes(quota.bytes), human_bytes(used.bytes));
  if (more.objects > 0 && saturating_add(used.objects, more.objects) > quota.objects)
    return refused(std::to_string(quota.objects) + " objects", std::to_string(used.objects));
  return ok();
}

}  // namespace

Result<void> StorageUse::Charge::add(uint64_t bytes, uint64_t objects) {
  TRY(use_.take(bucket_, owner_, {bytes, objects}));
  add_to(held_, {bytes, objects});
  return ok();
}

Result<void> StorageUse::take(const std::string& bucket, const std::string& owner,
                              StoredAmount amount) {
  const auto quotas = quotas_();
  {
    const MutexLock lock(mutex_);
    TRY(check(quotas->buckets, "bucket", bucket, at(buckets_, bucket), amount));
    if (!owner.empty()) TRY(check(quotas->users, "user", owner, at(owners_, owner), amount));
    add_to(all_[bucket][owner], amount);
    add_to(buckets_[bucket], amount);
    add_to(owners_[owner], amount);
  }
  return ok();
}

void StorageUse::add(const std::string& bucket, const std::string& owner, StoredAmount amount) {
  const MutexLock lock(mutex_);
  add_to(all_[bucket][owner], amount);
  add_to(buckets_[bucket], amount);
  add_to(owners_[owner], amount);
}

void StorageUse::remove(const std::string& bucket, const std::string& owner, StoredAmount amount) {
  const MutexLock lock(mutex_);
  const auto found = all_.find(bucket);
  if (found == all_.end()) return;  // the bucket has been removed
  take_from(found->second, owner, amount);
  take_from(buckets_, bucket, amount);
  take_from(owners_, owner, amount);
}

void StorageUse::forget(const std::string& bucket) {
  const MutexLock lock(mutex_);
  const auto found = all_.find(bucket);
  if (found == all_.end()) return;
  for (const auto& [owner, amount] : found->second) take_from(owners_, owner, amount);
  all_.erase(found);
  buckets_.erase(bucket);
}

StoredAmount StorageUse::of_bucket(const std::string& bucket) const {
  const MutexLock lock(mutex_);
  return at(buckets_, bucket);
}

StoredAmount StorageUse::of_owner(const std::string& owner) const {
  const MutexLock lock(mutex_);
  return at(owners_, owner);
}

std::map<std::string, StoredAmount> StorageUse::buckets() const {
  const MutexLock lock(mutex_);
  return buckets_;
}

}  // namespace trainyard::objects
