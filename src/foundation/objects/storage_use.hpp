// StorageUse counts stored bytes and objects, by bucket and by owner, and rejects writes that would
// exceed a quota.
//
// An owner is the user whose request stored an object, or started its upload; "" has no quota.
// Running writes and parts of running uploads count too: a Charge adds the usage of a running
// write, and its destructor subtracts it again unless keep() was called.
//
// Threads:  callable from anywhere; one Charge is confined to one thread at a time.
// Errors:   exhausted (Fault::quota_exceeded).
// Lifetime: a StorageUse outlives its charges.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

struct StorageQuota {
  uint64_t bytes = UINT64_MAX;
  uint64_t objects = UINT64_MAX;
};

// Quotas by name; "*" applies to all names without a quota of their own.
struct StorageQuotas {
  std::map<std::string, StorageQuota> buckets, users;
};
using FindStorageQuotas = std::function<std::shared_ptr<const StorageQuotas>()>;  // never nullptr

class StorageUse {
 public:
  explicit StorageUse(FindStorageQuotas quotas) : quotas_(std::move(quotas)) {}
  StorageUse(const StorageUse&) = delete;

  class Charge {
   public:
    Charge(Charge&& other) noexcept : use_(other.use_) {
      std::swap(held_, other.held_), swap_names(other);
    }
    Charge& operator=(Charge&&) = delete;
    ~Charge() {
      if (held_.bytes > 0 || held_.objects > 0) use_.remove(bucket_, owner_, held_);
    }
    // Must be called before the bytes are written.
    Result<void> add(uint64_t bytes, uint64_t objects);
    // Keeps the usage, because the object is stored.
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

  // Adds existing objects, without checking a quota.
  void add(const std::string& bucket, const std::string& owner, StoredAmount amount);
  void remove(const std::string& bucket, const std::string& owner, StoredAmount amount);
  // Removes a deleted bucket, with its uploads.
  void forget(const std::string& bucket);

  StoredAmount of_bucket(const std::string& bucket) const;
  StoredAmount of_owner(const std::string& owner) const;
  std::map<std::string, StoredAmount> buckets() const;

 private:
  Result<void> take(const std::string& bucket, const std::string& owner, StoredAmount amount);

  const FindStorageQuotas quotas_;
  mutable Mutex mutex_;
  // bucket -> owner -> amount
  std::map<std::string, std::map<std::string, StoredAmount>> all_ GUARDED_BY(mutex_);
  std::map<std::string, StoredAmount> buckets_ GUARDED_BY(mutex_);  // sums per bucket
  std::map<std::string, StoredAmount> owners_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::objects
