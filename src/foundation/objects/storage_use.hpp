// Counts what is stored, by bucket and by owner, and refuses what would exceed a quota.
//
// An owner is the person whose request stored an object, or began its upload; "" is of nobody's quota. Writes that are under
// way and parts of running uploads count: a Charge holds what a write uses until it is kept or given back.
//
// Threads:  callable from anywhere; one Charge is confined to one thread at a time.
// Errors:   exhausted, with the word quota_exceeded (objects.hpp).
// Lifetime: a StorageUse outlives its charges.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

struct StorageQuota {
  uint64_t bytes = UINT64_MAX;
  uint64_t objects = UINT64_MAX;
};

// By name; "*" is for each one that is not named.
struct StorageQuotas {
  std::map<std::string, StorageQuota> buckets, users;
};
using FindStorageQuotas = std::function<std::shared_ptr<const StorageQuotas>()>;  // never gives nullptr

class StorageUse {
 public:
  explicit StorageUse(FindStorageQuotas quotas) : quotas_(std::move(quotas)) {}
  StorageUse(const StorageUse&) = delete;

  class Charge {
   public:
    Charge(Charge&& other) noexcept : use_(other.use_) { std::swap(held_, other.held_), swap_names(other); }
    Charge& operator=(Charge&&) = delete;
    ~Charge() {
      if (held_.bytes > 0 || held_.objects > 0) use_.remove(bucket_, owner_, held_);
    }
    // Before it is used.
    Result<void> add(uint64_t bytes, uint64_t objects);
    // It is stored: no longer given back.
    void keep() { held_ = {}; }
    const std::string& owner() const { return owner_; }

   private:
    friend class StorageUse;
    Charge(StorageUse& use, std::string bucket, std::string owner)
        : use_(use), bucket_(std::move(bucket)), owner_(std::move(owner)) {}
    void swap_names(Charge& other) { bucket_.swap(other.bucket_), owner_.swap(other.owner_); }

    StorageUse& use_;
    std::string bucket_, owner_;
    StoredAmount held_;
  };
  Charge charge(std::string bucket, std::string owner) {
    return {*this, std::move(bucket), std::move(owner)};
  }

  // Without asking a quota: what is there already.
  void add(const std::string& bucket, const std::string& owner, StoredAmount amount);
  void remove(const std::string& bucket, const std::string& owner, StoredAmount amount);
  // The bucket is gone, with its uploads.
  void forget(const std::string& bucket);

  StoredAmount of_bucket(const std::string& bucket) const;
  StoredAmount of_owner(const std::string& owner) const;
  std::map<std::string, StoredAmount> buckets() const;

 private:
  Result<void> take(const std::string& bucket, const std::string& owner, StoredAmount amount);

  const FindStorageQuotas quotas_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::map<std::string, std::map<std::string, StoredAmount>> all_;  // by bucket, by owner
  std::map<std::string, StoredAmount> buckets_, owners_;            // their sums
};

}  // namespace trainyard::objects
